// SPDX-License-Identifier: Apache-2.0
// The second half of emission: which buffer each value lives in, how long each buffer lives, where it lies.
#pragma once

#include "ir/plan/Plan.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "passes/emit/Sequence.h"
#include "passes/zero/State.h"

namespace shardc::emit {

struct Location {
  uint32_t buffer = 0;
  int64_t offset = 0;     ///< bytes
  int64_t rankStride = 0; ///< bytes
  bool operator==(const Location &) const = default;
};

/// Owns the buffer table of a plan while it is made. Positions: the commands of all programs numbered through.
class Storage {
public:
  Storage(plan::Plan &plan, const Buckets &buckets, const CompileOptions &options);

  /// Gives every value of the next program a place. To be called in the order of the plan's programs.
  void place(const Sequence &sequence);
  /// Packs what is not persistent behind what is; fills in offsets, the space's size and bound. `capacity`: see `packSpace`.
  void pack(uint64_t capacity);

  /// Of a value or view.
  Location locationOf(const Sequence &sequence, const Value *value) const;
  const Buckets &buckets() const { return buckets_; }
  /// Is the buffer one of a bucket's: parameters, gradients, state, or what collectives gather and reduce?
  bool holdsBucket(uint32_t buffer) const;
  /// Input that result `result` of `op` overwrites, -1 if none.
  int overwritten(const Op &op, unsigned result) const;
  /// Scratch memory of the op's kernel; kernels of the host have their own.
  int64_t workspaceBytes(const Op &op) const;
  /// The buffer of the op's workspace, which lives during its command alone. Requires: it has one and is placed.
  uint32_t workspaceOf(const Op &op) const { return workspaces_.lookup(&op); }
  /// The buffer of a state; nullopt: no program has it.
  std::optional<uint32_t> state(zero::Role role, int64_t bucket) const;
  uint32_t scalars() const { return scalars_; }
  /// Buffer of the input of that name. Requires: there is one.
  uint32_t input(llvm::StringRef name) const { return inputs_.lookup(name); }
  /// Index into the plan's string table; equal strings share one.
  uint32_t string(llvm::StringRef text);

private:
  uint32_t add(llvm::StringRef name, plan::BufferKind kind, int64_t bytes, bool persistent, llvm::StringRef layer);
  uint32_t stateBuffer(zero::Role role, int64_t bucket, int64_t bytes);
  void touch(uint32_t buffer, uint64_t position);
  void placeSource(const Op &op);
  void placeConstant(const Op &op);
  void placeStates(const Sequence &sequence);
  void placeItem(const Sequence &sequence, const Item &item, uint64_t position);
  void placeResult(const Sequence &sequence, const Op &op, unsigned result, uint64_t position);
  /// A buffer of its own for what an op writes over an operand: same place, other content.
  uint32_t takeOver(uint32_t operand, const Value *value, uint64_t position);
  /// An operand in whose place exactly the result lies, -1 if none.
  int findInPlace(const Sequence &sequence, const Op &op, unsigned result, Location location) const;
  /// An operand that dies here and whose memory the result may take, -1 if none.
  int findDying(const Sequence &sequence, const Op &op, unsigned result, uint64_t position) const;

  plan::Plan &plan_;
  const Buckets &buckets_;
  const CompileOptions &options_;
  uint64_t position_ = 0; ///< of the next program
  llvm::DenseMap<const Value *, Location> locations_;  ///< of roots
  llvm::DenseMap<const Value *, uint64_t> lastUse_;    ///< of roots: position of the last access, views included
  llvm::DenseSet<const Value *> outputRoots_; ///< what the host reads after a program, or views of it do
  llvm::DenseMap<std::pair<const Op *, unsigned>, int> overwritten_;
  llvm::DenseMap<const Op *, uint32_t> workspaces_;
  llvm::StringMap<uint32_t> inputs_, strings_, states_;
  std::vector<std::pair<Tensor, uint32_t>> constants_; ///< equal ones share a buffer
  llvm::DenseMap<uint64_t, llvm::SmallVector<unsigned, 1>> constantsByHash_;
  uint32_t scalars_ = 0;
};

} // namespace shardc::emit
