# SPDX-License-Identifier: Apache-2.0
# What the host kernels use where it is there: OpenMP for threads, oneDNN for f32 products. And how they are compiled:
# optimised in every build type; errno and traps are nobody's business in a kernel, but NaN, order and -0 are.
file(GLOB KERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/host/*.cpp ${CMAKE_SOURCE_DIR}/runtime/comm/Sum.cpp)
set_source_files_properties(${KERNELS} PROPERTIES COMPILE_OPTIONS
  "-O3;-march=${SHARDC_HOST_ARCH};-fno-math-errno;-fno-trapping-math")
get_target_property(RUNTIME_TYPE shardc_runtime TYPE)
if(RUNTIME_TYPE STREQUAL INTERFACE_LIBRARY)
  return()
endif()
if(WITH_OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(shardc_runtime PUBLIC OpenMP::OpenMP_CXX)
endif()
if(WITH_ONEDNN)
  # Not by its CMake package: Debian's asks for OpenCL headers, which nobody needs here.
  find_path(DNNL_INCLUDE_DIR dnnl.h)
  find_library(DNNL_LIBRARY dnnl)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    target_include_directories(shardc_runtime SYSTEM PRIVATE ${DNNL_INCLUDE_DIR})
    target_link_libraries(shardc_runtime PRIVATE ${DNNL_LIBRARY})
    target_compile_definitions(shardc_runtime PRIVATE SHARDC_HAVE_ONEDNN)
  else()
    message(STATUS "oneDNN not found: host products use the own fallback")
  endif()
endif()

# .npz files. Found by hand: Debian's CMake package of libzip also wants its command-line tools.
find_path(LIBZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(LIBZIP_LIBRARY zip REQUIRED)
target_include_directories(shardc_runtime SYSTEM PRIVATE ${LIBZIP_INCLUDE_DIR})
target_link_libraries(shardc_runtime PRIVATE ${LIBZIP_LIBRARY})
