// SPDX-License-Identifier: Apache-2.0
// The device itself: kernels compiled from source, the cache of them, the fault record.
#include "runtime/cuda/Nvrtc.h"
#include "tests/cuda/OnDevice.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr const char *kTwice = "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }";

std::string compiled(const char *source, llvm::StringRef folder) {
  auto code = cuda::compileCubin(source, "sm_90a", folder);
  EXPECT_TRUE(bool(code)) << llvm::toString(code.takeError());
  return code ? *code : "";
}

struct CacheFolder {
  llvm::SmallString<64> path;
  CacheFolder() { llvm::sys::fs::createUniqueDirectory("shardc-kernels", path); }
  ~CacheFolder() { llvm::sys::fs::remove_directories(path); }
  /// The one file in it.
  std::string file() const {
    std::error_code ec;
    llvm::sys::fs::directory_iterator i(path, ec), end;
    return i != end ? i->path() : "";
  }
};

// These need no device.
TEST(KernelCache, keepsWhatItCompiled) {
  CacheFolder folder;
  std::string code = compiled(kTwice, folder.path);
  EXPECT_TRUE(llvm::StringRef(code).starts_with("\177ELF"));
  ASSERT_NE(folder.file(), "");
  // The second time it comes from the file: what lies there is what is given.
  llvm::sys::fs::file_status before, after;
  llvm::sys::fs::status(folder.file(), before);
  EXPECT_EQ(compiled(kTwice, folder.path), code);
  llvm::sys::fs::status(folder.file(), after);
  EXPECT_EQ(before.getUniqueID(), after.getUniqueID()) << "written again";
}

TEST(KernelCache, compilesDamagedOnesAnew) {
  CacheFolder folder;
  std::string code = compiled(kTwice, folder.path), file = folder.file();
  for (llvm::StringRef damaged : {"", "SHARDCK1", "something else of some length, no kernel by any means ........"}) {
    std::error_code ec;
    llvm::raw_fd_ostream(file, ec) << damaged;
    EXPECT_EQ(compiled(kTwice, folder.path), code);
    auto written = llvm::MemoryBuffer::getFile(file);
    ASSERT_TRUE(bool(written));
    EXPECT_TRUE((*written)->getBuffer().ends_with(code)) << "not repaired";
  }
  { // one bit of the code
    auto bytes = llvm::MemoryBuffer::getFile(file);
    std::string text = (*bytes)->getBuffer().str();
    text.back() ^= 1;
    std::error_code ec;
    llvm::raw_fd_ostream(file, ec) << text;
  }
  EXPECT_EQ(compiled(kTwice, folder.path), code);
}

TEST(KernelCache, isNoConditionForAKernel) {
  EXPECT_TRUE(llvm::StringRef(compiled(kTwice, "/dev/null/nowhere")).starts_with("\177ELF"));
  EXPECT_TRUE(llvm::StringRef(compiled(kTwice, "")).starts_with("\177ELF"));
}

TEST(KernelCache, saysWhatTheCompilerSays) {
  auto code = cuda::compileCubin("extern \"C\" __global__ void f() { nonsense; }", "sm_90a", "");
  ASSERT_FALSE(bool(code));
  std::string text = llvm::toString(code.takeError());
  EXPECT_NE(text.find("nonsense"), std::string::npos) << text;
}

TEST(CudaDevice, saysWhatIsMissing) {
  auto device = cuda::Device::create(1000);
  ASSERT_FALSE(bool(device));
  std::string text = llvm::toString(device.takeError());
  EXPECT_NE(text.find("--device: no CUDA device"), std::string::npos) << text;
}

TEST(CudaDevice, runsCompiledKernels) {
  SHARDC_NEEDS_DEVICE();
  auto kernel = sharedDevice()->compile(kTwice, "twice");
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  auto again = sharedDevice()->compile(kTwice, "twice");
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(*kernel, *again);
  float values[] = {1, 2.5, -3, 0};
  DeviceMemory memory(values, sizeof values);
  void *pointer = memory.data(), *args[] = {&pointer};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(4);
  ASSERT_EQ(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(*kernel), args), cudaSuccess);
  memory.get(values);
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[1], 5);
  EXPECT_EQ(values[2], -6);
}

TEST(CudaDevice, namesThePlaceOfAFault) {
  SHARDC_NEEDS_DEVICE();
  int site = sharedDevice()->faultSite("l0/Gather", "index");
  EXPECT_EQ(sharedDevice()->message({1, site, 12, 0, 10}), "l0/Gather: index out of range: got 12, wanted 0 to 9");
}

} // namespace
