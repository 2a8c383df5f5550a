// SPDX-License-Identifier: Apache-2.0
// Streams and events of the driver, destroyed with their owner.
#pragma once

#include "runtime/cuda/Device.h"
#include <utility>

namespace shardc::cuda {

class Event {
public:
  Event() = default;
  Event(Event &&other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~Event() {
    if (event_)
      cudaEventDestroy(event_);
  }
  llvm::Error create(bool timed = false) {
    return check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreate");
  }
  llvm::Error record(cudaStream_t stream) { return check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  /// So that it has a time in each run, also of a graph (`captured`). Requires: timed.
  llvm::Error stamp(cudaStream_t stream, bool captured) {
    return check(cudaEventRecordWithFlags(event_, stream, captured ? cudaEventRecordExternal : cudaEventRecordDefault),
                 "cudaEventRecordWithFlags");
  }
  /// What comes next on `stream` waits for what was last recorded.
  llvm::Error holdBack(cudaStream_t stream) const { return check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }
  cudaEvent_t get() const { return event_; }

private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
public:
  Stream() = default;
  Stream(Stream &&other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  ~Stream() {
    if (stream_)
      cudaStreamDestroy(stream_);
  }
  /// `urgent`: its kernels go before those of others that wait for room on the device.
  llvm::Error create(bool urgent) {
    int low = 0, high = 0;
    if (llvm::Error e = check(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange"))
      return e;
    return check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? high : low), "cudaStreamCreate");
  }
  llvm::Error synchronize() { return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

} // namespace shardc::cuda
