// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Device.h"
#include "ir/base/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "runtime/cuda/Nvrtc.h"
#include "runtime/cuda/Probe.h"
#include "runtime/host/Parallel.h"

namespace shardc::cuda {
namespace {

constexpr const char *kHint = "--device cpu runs a plan without a GPU";

/// Compiling one source, as parallelTasks counts: always worth a thread.
constexpr double kTaskCost = 1e9;

class RealDevice final : public Device {
public:
  ~RealDevice() override {
    cudaSetDevice(ordinal_);
    if (blas_)
      cublasLtDestroy(blas_);
    cudaFree(fault_);
    cudaFree(one_);
    for (cudaLibrary_t library : libraries_)
      cudaLibraryUnload(library);
  }

  llvm::Error open(int ordinal) {
    ordinal_ = ordinal;
    if (llvm::Error e = check(cudaSetDevice(ordinal), "cudaSetDevice"))
      return e;
    if (llvm::Error e = check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal),
                              "cudaDeviceGetAttribute"))
      return e;
    cudaDeviceProp properties = {};
    if (llvm::Error e = check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties"))
      return e;
    name_ = properties.name;
    int major = 0, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
    std::string capability = std::to_string(major) + "." + std::to_string(minor);
    if (cudaError_t code = probeKernels(); code != cudaSuccess)
      return userError("device " + llvm::Twine(ordinal) + ": no kernels for compute capability " + capability + ": " +
                           cudaGetErrorString(code),
                       "configure with -DCMAKE_CUDA_ARCHITECTURES for this device, or run with --device cpu");
    architecture_ = "sm_" + std::to_string(major * 10 + minor) + (major >= 9 ? "a" : "");
    if (llvm::Error e = check(cublasLtCreate(&blas_), "cublasLtCreate"))
      return e;
    if (llvm::Error e = check(cudaMalloc(reinterpret_cast<void **>(&fault_), sizeof(FaultRecord)), "cudaMalloc"))
      return e;
    if (llvm::Error e = check(cudaMalloc(reinterpret_cast<void **>(&one_), sizeof(float)), "cudaMalloc"))
      return e;
    const float one = 1;
    if (llvm::Error e = check(cudaMemcpy(one_, &one, sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy"))
      return e;
    return check(cudaMemset(fault_, 0, sizeof(FaultRecord)), "cudaMemset");
  }

  llvm::Expected<cudaKernel_t> compile(llvm::StringRef source, llvm::StringRef name) override {
    auto [entry, isNew] = loaded_.try_emplace(source);
    if (isNew) {
      auto code = takeCode(source);
      if (!code) {
        loaded_.erase(entry);
        return code.takeError();
      }
      cudaLibrary_t library;
      if (llvm::Error e = check(cudaLibraryLoadData(&library, code->data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                                "cudaLibraryLoadData")) {
        loaded_.erase(entry);
        return e;
      }
      libraries_.push_back(library);
      entry->second = library;
    }
    cudaKernel_t kernel;
    if (llvm::Error e = check(cudaLibraryGetKernel(&kernel, entry->second, name.str().c_str()), "cudaLibraryGetKernel"))
      return e;
    return kernel;
  }

  unsigned compileAhead(llvm::ArrayRef<std::string> sources) override {
    struct Result {
      std::string code;
      bool isNew = false;
    };
    std::vector<Result> results(sources.size());
    const std::string folder = kernelCacheFolder();
    host::parallelTasks(int64_t(sources.size()), kTaskCost, [&](int64_t i, int) {
      if (auto code = compileCubin(sources[i], architecture_, folder, &results[i].isNew))
        results[i].code = std::move(*code);
      else
        llvm::consumeError(code.takeError());
    });
    for (size_t i = 0; i < sources.size(); ++i)
      if (!results[i].code.empty())
        ahead_[sources[i]] = std::move(results[i].code);
    return unsigned(llvm::count_if(results, [](const Result &result) { return result.isNew; }));
  }

private:
  llvm::Expected<std::string> takeCode(llvm::StringRef source) {
    auto found = ahead_.find(source);
    if (found == ahead_.end())
      return compileCubin(source, architecture_, kernelCacheFolder());
    std::string code = std::move(found->second);
    ahead_.erase(found);
    return code;
  }

  std::string architecture_; ///< "sm_90a"
  llvm::StringMap<cudaLibrary_t> loaded_; ///< by source
  llvm::StringMap<std::string> ahead_;    ///< machine code that is not loaded yet, by source
  std::vector<cudaLibrary_t> libraries_;
};

} // namespace

llvm::Error check(cudaError_t code, const char *call) {
  if (code == cudaSuccess)
    return llvm::Error::success();
  return userError(llvm::Twine(call) + ": " + cudaGetErrorString(code), "", Exit::Fault);
}

llvm::Error check(cublasStatus_t code, const char *call) {
  if (code == CUBLAS_STATUS_SUCCESS)
    return llvm::Error::success();
  return userError(llvm::Twine(call) + ": " + cublasLtGetStatusString(code), "", Exit::Fault);
}

std::string Device::whyNone() {
  int count = 0;
  if (cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess)
    return cudaGetErrorString(code);
  return count > 0 ? "" : "the driver shows none";
}

llvm::Expected<std::unique_ptr<Device>> Device::create(int ordinal) {
  if (std::string why = whyNone(); !why.empty())
    return userError("--device: no CUDA device: " + why, kHint);
  int count = 0;
  cudaGetDeviceCount(&count);
  if (ordinal < 0 || ordinal >= count)
    return userError("--device: no CUDA device " + llvm::Twine(ordinal) + ": got " + llvm::Twine(count) +
                         " of them, wanted more than " + llvm::Twine(ordinal),
                     "start at most as many ranks on this host as it has devices");
  auto device = std::make_unique<RealDevice>();
  if (llvm::Error e = device->open(ordinal))
    return e;
  return device;
}

int Device::faultSite(llvm::StringRef place, llvm::StringRef what) {
  sites_.push_back({place.str(), what.str()});
  return int(sites_.size()) - 1;
}

std::string Device::message(const FaultRecord &record) const {
  bool known = record.site >= 0 && size_t(record.site) < sites_.size();
  std::string what = known ? sites_[record.site].place + ": " + sites_[record.site].what : "a kernel: index";
  return what + " out of range: got " + std::to_string(record.value) +
         (record.low < record.high
              ? ", wanted " + std::to_string(record.low) + " to " + std::to_string(record.high - 1)
              : std::string(", wanted none: the table is empty"));
}

} // namespace shardc::cuda
