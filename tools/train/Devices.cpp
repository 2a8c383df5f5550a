// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Devices.h"
#include "ir/base/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tools/common/CommandLine.h"
#ifdef SHARDC_HAVE_CUDA
#include "runtime/cuda/Executor.h"
#endif

namespace shardc {
namespace {

const char *const kHint = "train with --device cpu, which runs any plan";

#ifdef SHARDC_HAVE_CUDA
llvm::Error checkCuda() {
  std::string why = cuda::whyNoDevice();
  if (why.empty())
    return llvm::Error::success();
  return userError("--device: no CUDA device: " + why, kHint);
}

llvm::Expected<std::unique_ptr<Executor>> createCuda(const plan::Plan &plan, const ExecutorOptions &options,
                                                     const RankDevice &device) {
  cuda::DeviceOptions cudaOptions;
  // Some launchers show each process its own device only.
  cudaOptions.ordinal = cuda::deviceCount() == 1 ? 0 : device.processRank.value_or(0);
  cudaOptions.nccl = device.processRank.has_value();
  cudaOptions.graphs = device.graphs;
  if (device.tuning)
    cudaOptions.tuning = *device.tuning;
  return cuda::createExecutor(plan, options, cudaOptions);
}

uint64_t takenBeyond(uint64_t arenas) { return cuda::takenBeyond(arenas); }
#else
uint64_t takenBeyond(uint64_t) { return 0; }

llvm::Error checkCuda() {
  return userError("--device: this build has no CUDA: got cuda, wanted cpu",
                   llvm::Twine(kHint) + ", or build the preset cuda (-DWITH_CUDA=ON), which needs the CUDA toolkit and NCCL");
}

llvm::Expected<std::unique_ptr<Executor>> createCuda(const plan::Plan &, const ExecutorOptions &, const RankDevice &) {
  return checkCuda();
}
#endif

} // namespace

llvm::Expected<DeviceKind> chooseDevice(llvm::StringRef flag, const plan::Plan &plan) {
  const plan::Attr *target = findAttr(plan.options(), "target");
  llvm::StringRef name = flag.empty() && target ? llvm::StringRef(target->s()) : flag;
  if (name.empty() || name == "cpu")
    return DeviceKind::Cpu;
  if (name != "cuda")
    return userError((flag.empty() ? "plan: target: got " : "command line: --device: got ") + name + ", wanted cpu or cuda");
  if (llvm::Error error = checkCuda())
    return error;
  return DeviceKind::Cuda;
}

std::string describeMemory(const plan::Plan &plan, unsigned ranks) {
  uint64_t arenas = 0;
  for (const plan::Space &space : plan.spaces())
    arenas += space.kind() == plan::Space::DEVICE ? space.bytes() : 0;
  std::string text;
  llvm::raw_string_ostream(text) << "device memory: " << formatSize(arenas) << " for the plan"
                                 << (ranks > 1 ? " of each rank, " : ", ") << formatSize(takenBeyond(arenas * ranks))
                                 << " beside it";
  return text;
}

llvm::Expected<std::unique_ptr<Executor>> createExecutor(const plan::Plan &plan, Communicator &communicator,
                                                         const RankDevice &device) {
  ExecutorOptions options;
  options.communicator = &communicator;
  options.trace = device.trace;
  return device.kind == DeviceKind::Cuda ? createCuda(plan, options, device) : Executor::create(plan, options);
}

} // namespace shardc
