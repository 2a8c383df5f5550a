// SPDX-License-Identifier: Apache-2.0
// Where the buffers of a plan lie. What persists lies end to end, by kind, each kind a region; all that comes and goes in a step
// (activations, gradients, gathered buckets, workspaces) is packed together, in one region: no border costs a byte.
#pragma once

#include "ir/plan/Plan.h"
#include "passes/memory/Packing.h"

namespace shardc::emit {

/// The buffers that come and go, as packing sees them. Those that take over each other's place (a command's `in_place` names two
/// buffers) are one item, which lives as long as all of them.
struct Arena {
  std::vector<PackItem> items;
  std::vector<int32_t> itemOf; ///< by buffer; -1: it persists
};

/// Requires: lifetimes.
Arena arenaOf(const plan::Plan &plan);
/// What an arena takes at most if packing is to be called tight, where `bound` bytes live at the peak.
uint64_t tightBytes(uint64_t bound);
/// By how much the plan's arena is above its lower bound, if it is not tight; else 0.
uint64_t looseBytes(const plan::Plan &plan);
/// Packs it, and lays the plan out so. `capacity`: bytes that the space should not exceed; 0: any.
void packSpace(plan::Plan &plan, uint64_t capacity = 0);
/// Gives every buffer its offset and fills in the plan's one space. `offsets`: by buffer, of what comes and goes, counted from the end
/// of what persists. `method`: what the plan says about how they were found.
void layOut(plan::Plan &plan, llvm::ArrayRef<uint64_t> offsets, llvm::StringRef method);
/// Bytes of what persists.
uint64_t persistentBytes(const plan::Plan &plan);

} // namespace shardc::emit
