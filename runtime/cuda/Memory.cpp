// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Memory.h"
#include "ir/base/Error.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Device.h"
#include <algorithm>
#include <cstring>

namespace shardc::cuda {

Memory::Memory(Memory &&other) noexcept
    : communicator_(other.communicator_), spaces_(std::move(other.spaces_)), buffers_(std::move(other.buffers_)), deviceBytes_(other.deviceBytes_) {
  other.spaces_.clear();
}

Memory::~Memory() {
  for (const Space &space : spaces_)
    if (!space.onDevice)
      cudaFreeHost(space.data);
    else if (communicator_)
      communicator_->free(space.data);
    else
      cudaFree(space.data);
}

static llvm::Error doesNotFit(const llvm::Twine &place, uint64_t bytes, cudaError_t code) {
  size_t free = 0, total = 0;
  cudaGetLastError(); // not to be found again by the next call
  cudaMemGetInfo(&free, &total);
  return userError(place + ": cannot allocate " + llvm::Twine(bytes) + " bytes: " + cudaGetErrorString(code) +
                       ": the device has " + llvm::Twine(free) + " free of " + llvm::Twine(total),
                   "take a smaller batch, or a higher --zero, or end other processes on the device", Exit::DoesNotFit);
}

llvm::Error Memory::allocate(const plan::Space &space, int index) {
  std::string place = "space " + std::to_string(index);
  if (space.kind() == plan::Space::FILE)
    return userError(place + ": the CUDA runtime has no memory of kind file");
  const uint64_t bytes = std::max<uint64_t>(space.bytes(), kAlignment); // an empty one has an address, too
  const bool onDevice = space.kind() == plan::Space::DEVICE;
  void *data = nullptr;
  if (onDevice) {
    if (cudaError_t code = communicator_ ? communicator_->allocate(&data, bytes) : cudaMalloc(&data, bytes); code != cudaSuccess)
      return doesNotFit(place, bytes, code);
    spaces_.push_back({static_cast<char *>(data), bytes, true});
    deviceBytes_ += bytes;
    return llvm::Error::success();
  }
  if (cudaError_t code = cudaHostAlloc(&data, bytes, cudaHostAllocDefault); code != cudaSuccess)
    return userError(place + ": cannot allocate " + llvm::Twine(bytes) + " bytes of pinned memory: " + cudaGetErrorString(code),
                     "take a smaller batch, or a machine with more memory", Exit::DoesNotFit);
  spaces_.push_back({static_cast<char *>(data), bytes, false});
  std::memset(data, 0, bytes);
  return llvm::Error::success();
}

llvm::Expected<Memory> Memory::create(const plan::Plan &plan, DeviceCommunicator *communicator) {
  for (const plan::Buffer &buffer : plan.buffers()) {
    auto bad = [&](const llvm::Twine &what) { return userError("buffer " + buffer.name() + ": " + what); };
    if (buffer.space() >= uint32_t(plan.spaces_size()))
      return bad("space: got " + llvm::Twine(buffer.space()) + ", wanted below " + llvm::Twine(plan.spaces_size()));
    uint64_t size = plan.spaces(buffer.space()).bytes();
    if (buffer.offset() > size || buffer.bytes() > size - buffer.offset())
      return bad("ends beyond its space of " + llvm::Twine(size) + " bytes");
    if (buffer.offset() % kAlignment)
      return bad("offset: got " + llvm::Twine(buffer.offset()) + ", wanted a multiple of " + llvm::Twine(kAlignment));
  }
  Memory memory(communicator);
  for (int i = 0; i < plan.spaces_size(); ++i)
    if (llvm::Error e = memory.allocate(plan.spaces(i), i))
      return e;
  for (const plan::Buffer &buffer : plan.buffers())
    memory.buffers_.push_back(memory.spaces_[buffer.space()].data + buffer.offset());
  if (llvm::Error e = memory.clear())
    return e;
  return memory;
}

llvm::MutableArrayRef<char> Memory::largestOfDevice() const {
  llvm::MutableArrayRef<char> largest;
  for (const Space &space : spaces_)
    if (space.onDevice && space.bytes > largest.size())
      largest = {space.data, size_t(space.bytes)};
  return largest;
}

llvm::Error Memory::clear() {
  for (const Space &space : spaces_)
    if (space.onDevice)
      if (llvm::Error e = check(cudaMemset(space.data, 0, space.bytes), "cudaMemset"))
        return e;
  // The zeros are on their way only, on a stream that others do not wait for: they would wipe out what is written next.
  return check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

} // namespace shardc::cuda
