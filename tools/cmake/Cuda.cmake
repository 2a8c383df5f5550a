# SPDX-License-Identifier: Apache-2.0
# The runtime on CUDA devices (WITH_CUDA): shardc_cuda, of runtime/cuda/*.cpp, and of the .cu files there, which nvcc compiles and
# which see neither LLVM nor protobuf. The toolkit's libraries are linked dynamically: together they have gigabytes.
find_package(CUDAToolkit 12.8 REQUIRED) # cudaLibraryLoadData, cudaKernel_t
if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
set(CMAKE_CUDA_ARCHITECTURES 90a-real CACHE STRING "what the CUDA kernels are compiled for: 90a is H100 and H200")
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
set(CMAKE_CUDA_FLAGS_DEV "-O2" CACHE STRING "device code is optimised all the same")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG" CACHE STRING "" FORCE)
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know that nvcc has C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)

# An executable that is carried to another machine finds the libraries where the toolkit is installed by default.
list(APPEND CMAKE_BUILD_RPATH /usr/local/cuda/lib64)
list(APPEND CMAKE_INSTALL_RPATH /usr/local/cuda/lib64)

file(GLOB CUDA_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/cuda/*.cpp)
file(GLOB CUDA_KERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/cuda/*.cu)
add_library(shardc_cuda STATIC ${CUDA_SOURCES})
target_link_libraries(shardc_cuda PUBLIC shardc_runtime CUDA::cudart CUDA::cublasLt PRIVATE CUDA::nvrtc ${NCCL_LIBRARY})
target_include_directories(shardc_cuda SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS} PRIVATE ${NCCL_INCLUDE_DIR})
if(CUDA_KERNELS)
  add_library(shardc_cuda_kernels STATIC ${CUDA_KERNELS})
  target_include_directories(shardc_cuda_kernels PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(shardc_cuda_kernels PRIVATE --expt-relaxed-constexpr -lineinfo)
  target_link_libraries(shardc_cuda PUBLIC shardc_cuda_kernels)
endif()
