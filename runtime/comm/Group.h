// SPDX-License-Identifier: Apache-2.0
// What the ranks of a group know of each other: barriers, who has left, and why all had to stop.
#pragma once

#include "runtime/comm/Barrier.h"
#include "runtime/comm/Communicator.h"
#include "llvm/ADT/StringRef.h"
#include <mutex>

namespace shardc {

/// Lives in memory of its own or in shared memory: no pointers; zeroed memory is a new one. All functions
/// from any thread. A process that dies at any moment leaves nothing that another would wait for, but at a
/// barrier, until someone says `abort`.
class Group {
public:
  static size_t bytes(unsigned ranks) { return sizeof(Group) + ranks * sizeof(Member); }

  /// The barrier of a channel. False if not all will come: then all are told to stop, if they are not yet.
  [[nodiscard]] bool meet(unsigned channel, unsigned rank, unsigned ranks);
  /// The first cause stays. `rank` is who says it, of which each has one end. `text` is cut at some 1000
  /// bytes.
  void abort(unsigned rank, llvm::StringRef text);
  bool aborted() const { return speaker_.load() != 0; }
  std::string cause() const;
  /// The rank makes no more calls. Those who still wait for it learn that it has left; those who do not,
  /// nothing.
  void leave(unsigned rank);
  bool hasLeft(unsigned rank) const { return member(rank).left.load() != 0; }

private:
  struct alignas(64) Member {
    std::atomic<uint32_t> left, speaking;
    char cause[1024 - 2 * sizeof(uint32_t)]; ///< ends with a 0
  };
  Member &member(unsigned rank) { return reinterpret_cast<Member *>(this + 1)[rank]; }
  const Member &member(unsigned rank) const { return reinterpret_cast<const Member *>(this + 1)[rank]; }
  void disturb();

  Barrier barriers_[Communicator::kChannels];
  /// The rank whose cause counts, plus 1.
  alignas(64) std::atomic<uint32_t> speaker_;
};

/// Says a cause as the end of `rank`: "l0/MatMul: ..." becomes "rank 2: l0/MatMul: ...".
std::string causeOf(unsigned rank, llvm::StringRef text);

} // namespace shardc
