// SPDX-License-Identifier: Apache-2.0
// What the host hands to the device, and back, while the device works.
#pragma once

#include "runtime/cuda/Event.h"
#include "runtime/cuda/Pinned.h"
#include "llvm/ADT/SmallVector.h"
#include <cstring>

namespace shardc::cuda {

/// From host to device through areas of pinned memory, in turn: what is sent may be written over at
/// once.
class Staging {
public:
  /// So many areas of `bytes`: `send` waits only where all are under way.
  llvm::Error open(unsigned areas, uint64_t bytes);
  /// [from, from + bytes) comes to device memory `to` behind what is on the stream. Requires: not
  /// more bytes than an area has.
  llvm::Error send(void *to, const void *from, uint64_t bytes, cudaStream_t stream);

private:
  struct Area {
    Pinned memory;
    Event sent;
    bool isUsed = false;
  };
  std::vector<Area> areas_;
  unsigned next_ = 0;
};

/// Small results of the device, as they are at some time in a stream's work.
class Fetched {
public:
  static constexpr unsigned kMost = 64, kBytes = 8;
  llvm::Error open() { return memory_.allocate(kMost * kBytes); }
  bool isFull() const { return wanted_.size() == kMost; }
  /// `bytes` of device memory `from`, as they are behind what is on the stream; for `deliver`.
  /// Requires: not full, at most kBytes.
  llvm::Error fetch(const void *from, void *to, uint64_t bytes, cudaStream_t stream);
  /// Requires: the streams have come so far.
  void deliver();
  void forget() { wanted_.clear(); }

private:
  struct Wanted {
    void *to;
    uint64_t bytes;
  };
  Pinned memory_;
  llvm::SmallVector<Wanted, kMost> wanted_;
};

} // namespace shardc::cuda
