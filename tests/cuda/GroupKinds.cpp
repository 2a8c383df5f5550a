// SPDX-License-Identifier: Apache-2.0
// Ranks that share a device, behind the host's interface, for the suite of all communicators: arrays go to the device and back.
#include "runtime/comm/Local.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Event.h"
#include "tests/cuda/OnDevice.h"
#include "tests/runtime/CommunicatorHarness.h"

namespace shardc {
namespace {

/// Device memory that grows.
class Room {
public:
  ~Room() { cudaFree(data_); }
  char *of(int64_t bytes) {
    if (bytes > bytes_ || !data_) {
      cudaFree(data_);
      bytes_ = std::max<int64_t>(bytes, 1);
      EXPECT_EQ(cudaMalloc(&data_, bytes_), cudaSuccess);
    }
    return static_cast<char *>(data_);
  }

private:
  void *data_ = nullptr;
  int64_t bytes_ = 0;
};

class OverDevice final : public Communicator {
public:
  explicit OverDevice(std::unique_ptr<Communicator> host)
      : Communicator(host->rank(), host->size()), host_(std::move(host)),
        device_(llvm::cantFail(cuda::makeLocalCommunicator(*host_))) {
    for (Channel &channel : channels_)
      llvm::cantFail(channel.stream.create(/*urgent=*/false));
  }

  bool allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype) override {
    Channel &c = channels_[channel];
    const int64_t bytes = n * byteSize(dtype);
    char *deviceWhole = c.whole.of(bytes * size());
    bool nested = slice == static_cast<char *>(whole) + rank() * bytes;
    char *deviceSlice = nested ? deviceWhole + rank() * bytes : c.slice.of(bytes);
    return copy(c, deviceSlice, slice, bytes) && good(device_->allGather(channel, deviceSlice, deviceWhole, n, dtype, c.stream.get())) &&
           copy(c, whole, deviceWhole, bytes * size()) && good(c.stream.synchronize());
  }
  bool reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype) override {
    Channel &c = channels_[channel];
    const int64_t bytes = n * byteSize(dtype);
    char *deviceWhole = c.whole.of(bytes * size());
    bool nested = slice == static_cast<const char *>(whole) + rank() * bytes;
    char *deviceSlice = nested ? deviceWhole + rank() * bytes : c.slice.of(bytes);
    return copy(c, deviceWhole, whole, bytes * size()) &&
           good(device_->reduceScatter(channel, deviceWhole, deviceSlice, n, dtype, c.stream.get())) &&
           copy(c, slice, deviceSlice, bytes) && good(c.stream.synchronize());
  }
  bool allReduce(unsigned channel, void *data, int64_t n, DType dtype) override {
    Channel &c = channels_[channel];
    const int64_t bytes = n * byteSize(dtype);
    char *deviceData = c.whole.of(bytes);
    return copy(c, deviceData, data, bytes) && good(device_->allReduce(channel, deviceData, n, dtype, c.stream.get())) &&
           copy(c, data, deviceData, bytes) && good(c.stream.synchronize());
  }
  bool broadcast(unsigned channel, void *data, int64_t bytes, unsigned root) override {
    return host_->broadcast(channel, data, bytes, root);
  }
  void abort(const std::string &cause) override { host_->abort(cause); }
  std::string cause() const override { return host_->cause(); }

private:
  struct Channel {
    cuda::Stream stream;
    Room whole, slice;
  };
  static bool good(llvm::Error error) {
    if (!error)
      return true;
    ADD_FAILURE() << llvm::toString(std::move(error));
    return false;
  }
  static bool copy(Channel &c, void *to, const void *from, int64_t bytes) {
    return good(cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c.stream.get()), "cudaMemcpyAsync"));
  }

  std::unique_ptr<Communicator> host_;
  std::unique_ptr<cuda::DeviceCommunicator> device_;
  Channel channels_[kChannels];
};

Ends overDevice(unsigned ranks) {
  Ends ends;
  for (std::unique_ptr<Communicator> &host : makeLocalGroup(ranks))
    ends.push_back(std::make_unique<OverDevice>(std::move(host)));
  return ends;
}

} // namespace

std::vector<GroupKind> groupKinds() { return {{"DeviceLocal", overDevice, cuda::Device::whyNone}}; }

} // namespace shardc
