// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Staging.h"
#include <cassert>

namespace shardc::cuda {

llvm::Error Staging::open(unsigned areas, uint64_t bytes) {
  for (unsigned i = 0; i < areas; ++i) {
    Area &area = areas_.emplace_back();
    if (llvm::Error e = area.memory.allocate(bytes))
      return e;
    if (llvm::Error e = area.sent.create())
      return e;
  }
  return llvm::Error::success();
}

llvm::Error Staging::send(void *to, const void *from, uint64_t bytes, cudaStream_t stream) {
  Area &area = areas_[next_];
  next_ = (next_ + 1) % areas_.size();
  if (area.isUsed)
    if (llvm::Error e = check(cudaEventSynchronize(area.sent.get()), "cudaEventSynchronize"))
      return e;
  area.isUsed = true;
  std::memcpy(area.memory.data(), from, bytes);
  if (llvm::Error e =
          check(cudaMemcpyAsync(to, area.memory.data(), bytes, cudaMemcpyDefault, stream),
                "cudaMemcpyAsync"))
    return e;
  return area.sent.record(stream);
}

llvm::Error Fetched::fetch(const void *from, void *to, uint64_t bytes, cudaStream_t stream) {
  assert(!isFull() && bytes <= kBytes);
  char *pinned = memory_.as<char>() + wanted_.size() * kBytes;
  wanted_.push_back({to, bytes});
  return check(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void Fetched::deliver() {
  const char *pinned = memory_.as<char>();
  for (const Wanted &wanted : wanted_) {
    std::memcpy(wanted.to, pinned, wanted.bytes);
    pinned += kBytes;
  }
  wanted_.clear();
}

} // namespace shardc::cuda
