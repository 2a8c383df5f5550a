# SPDX-License-Identifier: Apache-2.0
# Generates C++ from the two protobuf schemas: our plan, and the official onnx-ml.proto of a pinned PyPI wheel.
set(GENERATED ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${GENERATED})
set(ONNX_VERSION 1.19.1)
set(ONNX_PROTO_SHA256 dcca2d4747117bc903f0e628f9e3f99a5054c130b6bd2289ce2242f6c701c6df)

# shardc_schema(TARGET SUBDIR/STEM.proto ROOT): library of the messages in ROOT/SUBDIR/STEM.proto,
# included as "SUBDIR/STEM.pb.h". Without the file the library is empty.
function(shardc_schema TARGET PROTO ROOT)
  if(NOT EXISTS ${ROOT}/${PROTO})
    add_library(${TARGET} INTERFACE)
    return()
  endif()
  string(REGEX REPLACE "\\.proto$" ".pb" STEM ${GENERATED}/${PROTO})
  get_filename_component(FOLDER ${STEM} DIRECTORY)
  file(MAKE_DIRECTORY ${FOLDER})
  add_custom_command(OUTPUT ${STEM}.cc ${STEM}.h
    COMMAND protobuf::protoc --cpp_out=lite:${GENERATED} -I ${ROOT} ${ROOT}/${PROTO}
    DEPENDS ${ROOT}/${PROTO} VERBATIM)
  # The header is listed, so that whoever links the library is compiled after it is generated.
  add_library(${TARGET} STATIC ${STEM}.cc ${STEM}.h)
  target_compile_options(${TARGET} PRIVATE -w)
  target_include_directories(${TARGET} SYSTEM PUBLIC ${GENERATED})
  target_link_libraries(${TARGET} PUBLIC protobuf::libprotobuf-lite)
endfunction()

# Leaves the path of a verified onnx-ml.proto in OUT. Kept in build/cache, for all build folders of this checkout.
function(shardc_onnx_proto OUT)
  if(SHARDC_ONNX_PROTO)
    if(NOT EXISTS ${SHARDC_ONNX_PROTO})
      message(FATAL_ERROR "SHARDC_ONNX_PROTO: no such file: ${SHARDC_ONNX_PROTO}")
    endif()
    file(SHA256 ${SHARDC_ONNX_PROTO} SUM)
    if(NOT SUM STREQUAL ONNX_PROTO_SHA256)
      message(FATAL_ERROR "SHARDC_ONNX_PROTO: not the onnx-ml.proto of onnx ${ONNX_VERSION}: ${SHARDC_ONNX_PROTO}")
    endif()
    set(${OUT} ${SHARDC_ONNX_PROTO} PARENT_SCOPE)
    return()
  endif()
  set(CACHE_DIR ${CMAKE_SOURCE_DIR}/build/cache/onnx-${ONNX_VERSION})
  set(PROTO ${CACHE_DIR}/onnx/onnx-ml.proto)
  if(EXISTS ${PROTO})
    file(SHA256 ${PROTO} SUM)
  endif()
  if(NOT SUM STREQUAL ONNX_PROTO_SHA256)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    # One fixed wheel, whatever this machine's Python and processor: only a text file is taken out of it.
    execute_process(COMMAND ${Python3_EXECUTABLE} -m pip download --quiet --no-deps --only-binary=:all:
      --disable-pip-version-check --platform manylinux2014_x86_64 --python-version 3.12
      --dest ${CACHE_DIR} onnx==${ONNX_VERSION} RESULT_VARIABLE FAILED)
    file(GLOB WHEEL ${CACHE_DIR}/onnx-${ONNX_VERSION}-*.whl)
    if(FAILED OR NOT WHEEL)
      message(FATAL_ERROR "cannot download onnx==${ONNX_VERSION} with pip; without network give its "
        "onnx-ml.proto: SHARDC_ONNX_PROTO=FILE in the environment, or -DSHARDC_ONNX_PROTO=FILE")
    endif()
    file(ARCHIVE_EXTRACT INPUT ${WHEEL} DESTINATION ${CACHE_DIR} PATTERNS onnx/onnx-ml.proto)
    file(REMOVE ${WHEEL})
    file(SHA256 ${PROTO} SUM)
    if(NOT SUM STREQUAL ONNX_PROTO_SHA256)
      message(FATAL_ERROR "${PROTO}: SHA256 is ${SUM}, wanted ${ONNX_PROTO_SHA256}")
    endif()
  endif()
  set(${OUT} ${PROTO} PARENT_SCOPE)
endfunction()

shardc_schema(shardc_plan_proto ir/plan/plan.proto ${CMAKE_SOURCE_DIR})
shardc_onnx_proto(PROTO)
get_filename_component(ONNX_ROOT ${PROTO} DIRECTORY)
if(NOT ONNX_ROOT MATCHES "/onnx$")
  set(ONNX_ROOT ${CMAKE_BINARY_DIR}/onnx-schema/onnx)
  configure_file(${PROTO} ${ONNX_ROOT}/onnx-ml.proto COPYONLY)
endif()
get_filename_component(ONNX_ROOT ${ONNX_ROOT} DIRECTORY)
shardc_schema(shardc_onnx_proto onnx/onnx-ml.proto ${ONNX_ROOT})
