// SPDX-License-Identifier: Apache-2.0
// Bytes that one rank sends for a collective: what the theory says any good algorithm needs, and rings reach.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// `bytes` is the whole array, all ranks' slices together: gathered, or before it is scattered. A gather or a reduce-scatter sends
/// (ranks - 1) / ranks of it, an all-reduce twice that; rounded up. Requires: ranks > 0.
uint64_t wireBytes(llvm::StringRef kernel, uint64_t ranks, uint64_t bytes);

/// Is the command a collective (not the wait for one)?
bool isCollective(const plan::Command &command);
/// Of a collective: its attribute `ranks`, and the bytes of its whole array. Requires: isCollective.
uint64_t collectiveRanks(const plan::Command &command);
uint64_t collectiveBytes(const plan::Command &command);

/// Bytes that the array of a reference has.
uint64_t bytesOf(const plan::Ref &ref);

} // namespace shardc
