# SPDX-License-Identifier: Apache-2.0
# How everything is compiled: build types, sanitizers, warnings, compiler cache.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1" CACHE STRING "fast to compile, assertions on; kernels are optimised all the same")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG" CACHE STRING "" FORCE)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "Dev or Release" FORCE)
endif()

# The same source in two checkouts of the project is one entry of the cache: paths are made relative,
# and debug information starts at the project's root.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

add_library(shardc_options INTERFACE)
target_include_directories(shardc_options INTERFACE ${CMAKE_SOURCE_DIR})
target_include_directories(shardc_options SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${CMAKE_BINARY_DIR}/generated)
target_compile_definitions(shardc_options INTERFACE SHARDC_VERSION="${PROJECT_VERSION}")
if(CMAKE_BUILD_TYPE STREQUAL Dev)
  # Without GCC's that are wrong more often than right, each in its own way in each version and optimisation level.
  target_compile_options(shardc_options INTERFACE -Wall -Wextra -Wno-unused-parameter
    -fno-exceptions -fno-rtti -Wno-maybe-uninitialized -Wno-dangling-pointer
    $<$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>:-Wno-dangling-reference>)
else() # warnings are for those who work on Shardc
  target_compile_options(shardc_options INTERFACE -fno-exceptions -fno-rtti -w)
endif()
target_link_libraries(shardc_options INTERFACE ${LLVM_SUPPORT_LIBS})

set(SHARDC_SANITIZE "" CACHE STRING "sanitizers, as after -fsanitize=")
# Warnings are errors where CI compiles. Other compilers, optimisation levels and sanitizers find warnings of their own.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13
    AND CMAKE_BUILD_TYPE STREQUAL Dev AND NOT SHARDC_SANITIZE)
  target_compile_options(shardc_options INTERFACE -Werror)
endif()
if(SHARDC_SANITIZE)
  set(FLAGS -fsanitize=${SHARDC_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(shardc_options INTERFACE ${FLAGS})
  target_link_options(shardc_options INTERFACE ${FLAGS})
endif()

# What the CPU that runs plans has at least. x86-64-v3 is AVX2 and FMA (2013 and later).
set(SHARDC_HOST_ARCH x86-64-v3 CACHE STRING "-march of the host kernels; native: only for this machine")
