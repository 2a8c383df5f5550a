// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Event.h"
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <nccl.h>
#include <thread>
#include <utility>

namespace shardc::cuda {
namespace {

using cuda::check;

llvm::Error check(ncclResult_t code, const char *call, ncclComm_t comm = nullptr) {
  if (code == ncclSuccess)
    return llvm::Error::success();
  std::string text = std::string(call) + ": " + ncclGetErrorString(code);
  if (const char *more = ncclGetLastError(comm); more && *more)
    text += std::string(": ") + more;
  return userError(text, "", Exit::Fault);
}

ncclDataType_t typeOf(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return ncclFloat32;
  case DType::F64:
    return ncclFloat64;
  case DType::F16:
    return ncclFloat16;
  case DType::BF16:
    return ncclBfloat16;
  case DType::I32:
    return ncclInt32;
  case DType::I64:
    return ncclInt64;
  case DType::U8:
  case DType::Bool:
    return ncclUint8;
  }
  return ncclUint8;
}

/// What `allocate` gave, and every rank has alike.
struct Registered {
  void *memory;
  uint64_t bytes;
};

struct Member {
  ncclComm_t comm = nullptr;
  std::vector<ncclWindow_t> windows; ///< of all arrays
};

/// A communicator on its way. Shared with the thread that makes it, which may be left behind.
struct Meeting {
  Member member;
  ncclResult_t code = ncclSuccess;
  const char *call = "";
  std::atomic<bool> isOver = false;

  /// Waits for all ranks, perhaps for one that has died.
  void hold(int device, const ncclUniqueId &id, int size, int rank, llvm::ArrayRef<Registered> arrays) {
    cudaSetDevice(device);
    call = "ncclCommInitRankConfig";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO; // gathers by copy engines: kernels would take multiprocessors from products
    code = ncclCommInitRankConfig(&member.comm, size, id, rank, &config);
    for (const Registered &array : arrays) {
      if (code != ncclSuccess)
        break;
      call = "ncclCommWindowRegister";
      code = ncclCommWindowRegister(member.comm, array.memory, array.bytes, &member.windows.emplace_back(nullptr),
                                    NCCL_WIN_COLL_SYMMETRIC);
    }
    isOver = true;
  }
};

class NcclCommunicator final : public DeviceCommunicator {
public:
  NcclCommunicator(Communicator &host, llvm::ArrayRef<unsigned> channels)
      : DeviceCommunicator(host.rank(), host.size()), host_(host), channels_(channels.begin(), channels.end()) {}

  cudaError_t allocate(void **memory, uint64_t bytes) override {
    if (ncclMemAlloc(memory, bytes) != ncclSuccess) // what else could it be
      return cudaErrorMemoryAllocation;
    arrays_.push_back({*memory, bytes});
    return cudaSuccess;
  }
  void free(void *memory) override { ncclMemFree(memory); }

  llvm::Error connect() override {
    for (unsigned channel : channels_) {
      ncclUniqueId id = {};
      if (rank() == 0)
        if (llvm::Error e = check(ncclGetUniqueId(&id), "ncclGetUniqueId"))
          return e;
      if (!host_.broadcast(/*channel=*/0, &id, sizeof id, /*root=*/0))
        return groupError(host_, Exit::Fault);
      if (llvm::Error e = meet(id, members_[channel]))
        return e;
      if (llvm::Error e = gatherTwice(channel))
        return e;
    }
    return llvm::Error::success();
  }

  void disconnect() override {
    for (Member &member : members_) {
      ncclComm_t comm = std::exchange(member.comm, nullptr);
      if (!comm)
        continue;
      for (ncclWindow_t window : member.windows)
        ncclCommWindowDeregister(comm, window);
      ncclCommDestroy(comm);
    }
  }

  void abort() override {
    constexpr auto kPatience = std::chrono::seconds(2);
    // Its kernels see a flag that is raised first. What comes then may wait for graphs that nobody destroys: left behind.
    auto left = std::make_shared<std::atomic<int>>(0);
    for (Member &member : members_)
      if (ncclComm_t comm = std::exchange(member.comm, nullptr)) {
        ++*left;
        std::thread([left, comm] {
          ncclCommAbort(comm);
          --*left;
        }).detach();
      }
    for (auto end = std::chrono::steady_clock::now() + kPatience; *left && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  bool capturable() const override { return true; }

  llvm::Error poll() override {
    for (const Member &member : members_) {
      ncclComm_t comm = member.comm;
      ncclResult_t state = ncclSuccess;
      if (comm)
        if (llvm::Error e = check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError", comm))
          return e;
      if (state != ncclSuccess && state != ncclInProgress)
        return check(state, "NCCL", comm);
    }
    return llvm::Error::success();
  }

  llvm::Error allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype, cudaStream_t stream) override {
    ncclComm_t comm = members_[channel].comm;
    return check(ncclAllGather(slice, whole, size_t(n), typeOf(dtype), comm, stream), "ncclAllGather", comm);
  }
  llvm::Error reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype,
                            cudaStream_t stream) override {
    ncclComm_t comm = members_[channel].comm;
    return check(ncclReduceScatter(whole, slice, size_t(n), typeOf(dtype), ncclSum, comm, stream), "ncclReduceScatter", comm);
  }
  llvm::Error allReduce(unsigned channel, void *data, int64_t n, DType dtype, cudaStream_t stream) override {
    ncclComm_t comm = members_[channel].comm;
    return check(ncclAllReduce(data, data, size_t(n), typeOf(dtype), ncclSum, comm, stream), "ncclAllReduce", comm);
  }

private:
  llvm::Error meet(const ncclUniqueId &id, Member &member) {
    int device = 0;
    if (llvm::Error e = check(cudaGetDevice(&device), "cudaGetDevice"))
      return e;
    auto meeting = std::make_shared<Meeting>();
    std::thread([meeting, id, device, size = int(size()), rank = int(rank()), arrays = arrays_] {
      meeting->hold(device, id, size, rank, arrays);
    }).detach();
    while (!meeting->isOver) {
      if (host_.aborted())
        return groupError(host_, Exit::Fault);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    member = meeting->member;
    return check(meeting->code, meeting->call);
  }

  /// Of what is alike on all ranks. Gathers by copy engines are told apart by numbers from 1 on, but by a mere 1 where a graph has
  /// them: a first gather's number must not be taken for a graph's.
  llvm::Error gatherTwice(unsigned channel) {
    if (arrays_.empty() || arrays_[0].bytes < size())
      return llvm::Error::success();
    Stream stream;
    if (llvm::Error e = stream.create(/*urgent=*/false))
      return e;
    char *bytes = static_cast<char *>(arrays_[0].memory);
    for (int i = 0; i < 2; ++i)
      if (llvm::Error e = allGather(channel, bytes + rank(), bytes, 1, DType::U8, stream.get()))
        return e;
    cudaError_t code;
    while ((code = cudaStreamQuery(stream.get())) == cudaErrorNotReady) {
      if (host_.aborted())
        return groupError(host_, Exit::Fault);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return check(code, "ncclAllGather");
  }

  Communicator &host_;
  std::vector<unsigned> channels_;
  std::vector<Registered> arrays_;
  Member members_[Communicator::kChannels]; ///< by channel
};

} // namespace

llvm::Expected<std::unique_ptr<DeviceCommunicator>> makeNcclCommunicator(Communicator &host, llvm::ArrayRef<unsigned> channels) {
  constexpr const char *kMulticast = "NCCL_NVLS_ENABLE";
  if (const char *value = std::getenv(kMulticast); value && llvm::StringRef(value) != "0")
    return userError(std::string(kMulticast) + ": got '" + value + "', wanted 0 or nothing: multicast memory is not used here",
                     std::string("unset ") + kMulticast);
  setenv(kMulticast, "0", /*overwrite=*/1); // NCCL reads it at its first call
  return std::make_unique<NcclCommunicator>(host, channels);
}

} // namespace shardc::cuda
