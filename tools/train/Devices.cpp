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
  cudaOptions.onProgress = device.onProgress;
  if (device.tuning)
    cudaOptions.tuning = *device.tuning;
  return cuda::createExecutor(plan, options, cudaOptions);
}

uint64_t takenBeyond(uint64_t arenas) { return cuda::takenBeyond(arenas); }
unsigned countDevices() { return unsigned(cuda::deviceCount()); }
DeviceFacts facts() { return {cuda::deviceName(), cuda::deviceBytes()}; }
#else
unsigned countDevices() { return 0; }
DeviceFacts facts() { return {}; }
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
    return userError((flag.empty() ? "plan: target: got " : "--device: got ") + name + ", wanted cpu or cuda");
  if (llvm::Error error = checkCuda())
    return error;
  return DeviceKind::Cuda;
}

unsigned cudaDevices() { return countDevices(); }
DeviceFacts deviceFacts() { return facts(); }

static uint64_t deviceBytes(const plan::Plan &plan) {
  uint64_t bytes = 0;
  for (const plan::Space &space : plan.spaces())
    bytes += space.kind() == plan::Space::DEVICE ? space.bytes() : 0;
  return bytes;
}

static llvm::Error doesNotFit(uint64_t budget, uint64_t arena, uint64_t beside, const char *what) {
  return userError("--memory: does not fit: got " + formatSize(budget) + ", wanted " + formatSize(arena + beside) + ": " +
                       formatSize(arena) + " for the plan, " + formatSize(beside) + " beside it" + what,
                   "compile it again with shardc --memory SIZE, which says what would fit", Exit::DoesNotFit);
}

llvm::Error checkMemory(const plan::Plan &plan, uint64_t budget) {
  const uint64_t arena = deviceBytes(plan);
  if (budget == 0 || arena + plan.floor_bytes() <= budget)
    return llvm::Error::success();
  return doesNotFit(budget, arena, plan.floor_bytes(), " by its machine");
}

MemoryUse memoryUse(const plan::Plan &plan, unsigned ranks) {
  const uint64_t arena = deviceBytes(plan);
  return {arena, takenBeyond(arena * ranks), ranks};
}

std::string describe(const MemoryUse &use) {
  return "device memory: " + formatSize(use.plan) + " for the plan" + (use.ranks > 1 ? " of each rank, " : ", ") +
         formatSize(use.beside) + " beside it";
}

llvm::Error checkMemory(const plan::Plan &plan, uint64_t budget, const MemoryUse &use) {
  constexpr uint64_t kTolerance = uint64_t(64) << 20;
  const uint64_t beside = use.beside / use.ranks;
  if (budget == 0 || beside <= plan.floor_bytes() + kTolerance || use.plan + beside <= budget)
    return llvm::Error::success();
  return doesNotFit(budget, use.plan, beside, " as measured, with what other processes take of the device");
}

llvm::Expected<std::unique_ptr<Executor>> createExecutor(const plan::Plan &plan, Communicator &communicator,
                                                         const RankDevice &device) {
  ExecutorOptions options;
  options.communicator = &communicator;
  options.trace = device.trace;
  return device.kind == DeviceKind::Cuda ? createCuda(plan, options, device) : Executor::create(plan, options);
}

} // namespace shardc
