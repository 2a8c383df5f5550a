// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Nvrtc.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "ir/base/FileHash.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <nvrtc.h>

namespace shardc::cuda {
namespace {

constexpr llvm::StringLiteral kMagic = "SHARDCK1";
/// Where cuda_fp16.h and cuda_bf16.h are, if a kernel includes them.
constexpr const char *kIncludes = "--include-path=/usr/local/cuda/include";

llvm::Error check(nvrtcResult code, const char *call) {
  if (code == NVRTC_SUCCESS)
    return llvm::Error::success();
  return userError(llvm::Twine(call) + ": " + nvrtcGetErrorString(code));
}

/// All that decides the machine code.
std::string keyOf(llvm::StringRef source, llvm::StringRef architecture) {
  int major = 0, minor = 0;
  nvrtcVersion(&major, &minor);
  std::string text = (architecture + " " + llvm::Twine(major) + "." + llvm::Twine(minor) + "\n" + source).str();
  return fileHash(text);
}

/// File: magic, hash of the code, the code.
std::string readCached(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return "";
  llvm::StringRef bytes = (*file)->getBuffer();
  if (!bytes.consume_front(kMagic) || bytes.size() < 32 || fileHash(bytes.drop_front(32)) != bytes.take_front(32))
    return "";
  return bytes.drop_front(32).str();
}

void writeCached(llvm::StringRef folder, llvm::StringRef path, llvm::StringRef code) {
  if (llvm::sys::fs::create_directories(folder))
    return;
  auto write = [&](llvm::raw_ostream &os) {
    os << kMagic << fileHash(code) << code;
    return llvm::Error::success();
  };
  llvm::consumeError(writeFileAtomically(path, write)); // the next run compiles again
}

struct Program {
  nvrtcProgram handle = nullptr;
  ~Program() { nvrtcDestroyProgram(&handle); }

  std::string log() const {
    size_t size = 0;
    if (nvrtcGetProgramLogSize(handle, &size) != NVRTC_SUCCESS || size <= 1)
      return "";
    std::string text(size, 0);
    nvrtcGetProgramLog(handle, text.data());
    return llvm::StringRef(text.c_str()).rtrim().substr(0, 2000).str();
  }
};

llvm::Expected<std::string> compile(llvm::StringRef source, llvm::StringRef architecture) {
  Program program;
  std::string text = source.str(), target = ("--gpu-architecture=" + architecture).str();
  if (llvm::Error e = check(nvrtcCreateProgram(&program.handle, text.c_str(), "generated.cu", 0, nullptr, nullptr), "nvrtcCreateProgram"))
    return e;
  const char *options[] = {target.c_str(), "--std=c++20", "--device-as-default-execution-space", kIncludes};
  if (nvrtcResult code = nvrtcCompileProgram(program.handle, std::size(options), options); code != NVRTC_SUCCESS)
    return userError(llvm::Twine("generated kernel: ") + nvrtcGetErrorString(code) + ": " + program.log());
  size_t size = 0;
  if (llvm::Error e = check(nvrtcGetCUBINSize(program.handle, &size), "nvrtcGetCUBINSize"))
    return e;
  std::string code(size, 0);
  if (llvm::Error e = check(nvrtcGetCUBIN(program.handle, code.data()), "nvrtcGetCUBIN"))
    return e;
  return code;
}

} // namespace

std::string kernelCacheFolder() {
  llvm::SmallString<128> folder;
  if (!llvm::sys::path::cache_directory(folder))
    return "";
  llvm::sys::path::append(folder, "shardc", "kernels");
  return folder.str().str();
}

llvm::Expected<std::string> compileCubin(llvm::StringRef source, llvm::StringRef architecture, llvm::StringRef cacheFolder,
                                         bool *isNew) {
  llvm::SmallString<128> path(cacheFolder);
  if (!cacheFolder.empty()) {
    llvm::sys::path::append(path, keyOf(source, architecture) + ".cubin");
    if (std::string code = readCached(path); !code.empty())
      return code;
  }
  if (isNew)
    *isNew = true;
  auto code = compile(source, architecture);
  if (code && !cacheFolder.empty())
    writeCached(cacheFolder, path, *code);
  return code;
}

} // namespace shardc::cuda
