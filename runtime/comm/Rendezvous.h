// SPDX-License-Identifier: Apache-2.0
// How the processes of a group find each other and see that they mean the same work.
#pragma once

#include "runtime/comm/LocalSocket.h"
#include "runtime/comm/Process.h"
#include <vector>

namespace shardc {

/// What a rank holds when all have met.
struct Rendezvous {
  /// Rank 0: a socket to each other rank, by rank (its own is empty). The others: one, to rank 0. Nothing
  /// more is said on them; one that closes tells that its process has ended.
  std::vector<Descriptor> peers;
  /// Of all ranks, in no file system; zeros at first.
  Descriptor memory;
};

/// Rank 0 makes the memory and waits for the others; see joinProcessGroup. Requires: size > 1.
llvm::Expected<Rendezvous> meetRanks(const ProcessGroupOptions &options, size_t memoryBytes);

} // namespace shardc
