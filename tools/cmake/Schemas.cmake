# SPDX-License-Identifier: Apache-2.0
# Generates C++ from the two protobuf schemas: our plan, and the official onnx-ml.proto of a pinned PyPI wheel.
set(GENERATED ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${GENERATED}/ir/plan ${GENERATED}/onnx)

function(shardc_schema TARGET PROTO OUT_DIR ROOT)
  get_filename_component(STEM ${PROTO} NAME_WLE)
  set(CPP ${OUT_DIR}/${STEM}.pb.cc)
  add_custom_command(OUTPUT ${CPP} ${OUT_DIR}/${STEM}.pb.h
    COMMAND protobuf::protoc --cpp_out=lite:${ROOT} -I ${ARGN} ${PROTO} DEPENDS ${PROTO})
  add_library(${TARGET} STATIC ${CPP})
  target_include_directories(${TARGET} SYSTEM PUBLIC ${GENERATED})
  target_link_libraries(${TARGET} PUBLIC protobuf::libprotobuf-lite)
endfunction()
