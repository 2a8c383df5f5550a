// SPDX-License-Identifier: Apache-2.0
// Ranks as threads on one device. In each call they tell each other, by the host's group, where their arrays lie; events on the
// device order what they do there. Each rank reads all arrays and writes what no other reads in the same call.
#include "ir/base/Error.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/Sum.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Event.h"
#include "runtime/cuda/Sum.h"
#include <array>

namespace shardc::cuda {
namespace {

/// What a rank tells in a call. In one process an address and an event mean the same to all.
struct Call {
  const char *in;
  char *out;
  cudaEvent_t ready, done;
};

SumType sumTypeOf(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return SumType::F32;
  case DType::F64:
    return SumType::F64;
  case DType::F16:
    return SumType::F16;
  case DType::BF16:
    return SumType::BF16;
  case DType::I32:
    return SumType::U32;
  case DType::I64:
    return SumType::U64;
  case DType::U8:
  case DType::Bool:
    return SumType::U8;
  }
  return SumType::U8;
}

class LocalCommunicator final : public DeviceCommunicator {
public:
  explicit LocalCommunicator(Communicator &host) : DeviceCommunicator(host.rank(), host.size()), host_(host) {}

  llvm::Error open() {
    for (Channel &channel : *channels_)
      for (Event *event : {&channel.ready, &channel.done})
        if (llvm::Error e = event->create())
          return e;
    return llvm::Error::success();
  }

  // A rank that is through with its last call may end while another still enqueues that it waits for its event: each keeps all events.
  llvm::Error connect() override {
    const std::shared_ptr<Channels> *own = &channels_, *all[kMaxLocalRanks];
    if (!host_.allGather(0, &own, all, sizeof own, DType::U8))
      return groupError(host_, Exit::Fault);
    for (unsigned r = 0; r < size(); ++r)
      others_.push_back(*all[r]);
    return shardc::waitForAll(host_); // `all` are the ranks' own members
  }

  bool capturable() const override { return false; } // waits for other threads while it enqueues

  llvm::Error allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype, cudaStream_t stream) override {
    if (llvm::Error e = begin(channel, slice, whole, stream))
      return e;
    const Call *calls = (*channels_)[channel].calls;
    const int64_t bytes = n * byteSize(dtype);
    for (unsigned r = 0; r < size() && bytes; ++r) {
      char *to = static_cast<char *>(whole) + r * bytes;
      if (to != calls[r].in) // in place
        if (llvm::Error e = check(cudaMemcpyAsync(to, calls[r].in, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync"))
          return e;
    }
    return end(channel, stream);
  }

  llvm::Error reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype,
                            cudaStream_t stream) override {
    if (llvm::Error e = begin(channel, whole, slice, stream))
      return e;
    SumArrays arrays = parts(channel);
    arrays.results[0] = slice;
    arrays.numResults = 1;
    if (llvm::Error e = check(launchSum(sumTypeOf(dtype), arrays, n * rank(), 0, n, stream), "sum over ranks"))
      return e;
    return end(channel, stream);
  }

  llvm::Error allReduce(unsigned channel, void *data, int64_t n, DType dtype, cudaStream_t stream) override {
    if (llvm::Error e = begin(channel, data, data, stream))
      return e;
    SumArrays arrays = parts(channel);
    const Call *calls = (*channels_)[channel].calls;
    for (unsigned r = 0; r < size(); ++r)
      arrays.results[r] = calls[r].out;
    arrays.numResults = size();
    Part part(n, size(), rank()); // this rank sums it for all
    if (llvm::Error e = check(launchSum(sumTypeOf(dtype), arrays, part.begin, part.begin, part.count, stream), "sum over ranks"))
      return e;
    return end(channel, stream);
  }

private:
  struct Channel {
    Event ready, done; ///< recorded anew in each call, when all have waited for the one before
    Call calls[kMaxLocalRanks]; ///< of the call under way
  };

  /// All ranks' arrays are ready, for what comes next on the stream.
  llvm::Error begin(unsigned channel, const void *in, void *out, cudaStream_t stream) {
    Channel &c = (*channels_)[channel];
    if (llvm::Error e = c.ready.record(stream))
      return e;
    Call own{static_cast<const char *>(in), static_cast<char *>(out), c.ready.get(), c.done.get()};
    if (!host_.allGather(channel, &own, c.calls, sizeof own, DType::U8))
      return groupError(host_, Exit::Fault);
    return waitForAll(channel, stream, &Call::ready);
  }

  /// All ranks have done their part; the arrays may be used again.
  llvm::Error end(unsigned channel, cudaStream_t stream) {
    if (llvm::Error e = (*channels_)[channel].done.record(stream))
      return e;
    char own = 0, all[kMaxLocalRanks];
    if (!host_.allGather(channel, &own, all, 1, DType::U8))
      return groupError(host_, Exit::Fault);
    return waitForAll(channel, stream, &Call::done);
  }

  llvm::Error waitForAll(unsigned channel, cudaStream_t stream, cudaEvent_t Call::*event) {
    const Call *calls = (*channels_)[channel].calls;
    for (unsigned r = 0; r < size(); ++r)
      if (r != rank())
        if (llvm::Error e = check(cudaStreamWaitEvent(stream, calls[r].*event, 0), "cudaStreamWaitEvent"))
          return e;
    return llvm::Error::success();
  }

  SumArrays parts(unsigned channel) const {
    const Call *calls = (*channels_)[channel].calls;
    SumArrays arrays = {};
    arrays.ranks = size();
    for (unsigned r = 0; r < size(); ++r)
      arrays.parts[r] = calls[r].in;
    return arrays;
  }

  using Channels = std::array<Channel, Communicator::kChannels>;
  Communicator &host_;
  std::shared_ptr<Channels> channels_ = std::make_shared<Channels>();
  llvm::SmallVector<std::shared_ptr<Channels>, kMaxLocalRanks> others_;
};

} // namespace

llvm::Expected<std::unique_ptr<DeviceCommunicator>> makeLocalCommunicator(Communicator &host) {
  if (host.size() > kMaxLocalRanks)
    return userError("ranks on one device: got " + llvm::Twine(host.size()) + ", wanted at most " + llvm::Twine(kMaxLocalRanks),
                     "start one process a device, with torchrun or mpirun");
  auto communicator = std::make_unique<LocalCommunicator>(host);
  if (llvm::Error e = communicator->open())
    return e;
  return communicator;
}

} // namespace shardc::cuda
