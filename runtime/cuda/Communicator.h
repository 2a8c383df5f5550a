// SPDX-License-Identifier: Apache-2.0
// What ranks say to each other in device memory: the collectives of a plan, enqueued on streams.
#pragma once

#include "ir/base/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cuda_runtime_api.h>
#include <memory>

namespace shardc {
class Communicator;
}

namespace shardc::cuda {

/// One rank's end of a group, beside the host's. All ranks make the same calls in the same order on each channel (communicator c of
/// the plan); calls on different channels may come from different threads. A call only enqueues: what came before on the stream is
/// done before it, on all ranks, and what comes after sees its result. Arrays and places in them are as for shardc::Communicator.
/// Sums have a fixed order. Errors: the group's, or a device's.
class DeviceCommunicator {
public:
  virtual ~DeviceCommunicator() = default;
  unsigned rank() const { return rank_; }
  unsigned size() const { return size_; }

  /// Memory of the current device for arrays of the calls: whole spaces of a plan, the same on all ranks in the same order. Before
  /// `connect`; freed before this object is. An error leaves nothing.
  virtual cudaError_t allocate(void **memory, uint64_t bytes) { return cudaMalloc(memory, bytes); }
  virtual void free(void *memory) { cudaFree(memory); }

  /// Once, by all ranks, when each is ready to run the plan; before any call. What the first memory begins with is alike on all ranks.
  virtual llvm::Error connect() { return llvm::Error::success(); }
  /// After the last call, when no graph holds one any more, and before memory is freed.
  virtual void disconnect() {}
  /// Instead: whatever of the calls is under way on the device shall end, unfinished. Takes seconds at most; then nothing of this can
  /// be used, or destroyed.
  virtual void abort() {}
  /// May a graph hold the calls?
  virtual bool capturable() const = 0;
  /// An error of communication that has come to light since, in other words than the group's; asked while waiting for a device.
  virtual llvm::Error poll() { return llvm::Error::success(); }

  virtual llvm::Error allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype, cudaStream_t stream) = 0;
  virtual llvm::Error reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype,
                                    cudaStream_t stream) = 0;
  virtual llvm::Error allReduce(unsigned channel, void *data, int64_t n, DType dtype, cudaStream_t stream) = 0;

protected:
  DeviceCommunicator(unsigned rank, unsigned size) : rank_(rank), size_(size) {}

private:
  unsigned rank_, size_;
};

/// Ranks that are threads of this process and share one device, as those of `host` (Local.h), which outlives the result. Sums run in
/// rank order, bit by bit as on the host. For tests, and for plans of several ranks on one GPU: NCCL refuses those.
/// Error: too many ranks.
llvm::Expected<std::unique_ptr<DeviceCommunicator>> makeLocalCommunicator(Communicator &host);

/// NCCL, one process and one device a rank. `host`, which outlives the result, carries the id (channel 0). `channels`: those that
/// the plan uses, each with a NCCL communicator of its own, so that they may run at once. What `allocate` gives is registered with
/// each of them. Graphs that hold calls are destroyed first, then memory.
/// Error: NCCL_NVLS_ENABLE is set to other than 0: multicast memory is not used here.
llvm::Expected<std::unique_ptr<DeviceCommunicator>> makeNcclCommunicator(Communicator &host, llvm::ArrayRef<unsigned> channels);

} // namespace shardc::cuda
