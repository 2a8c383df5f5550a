// SPDX-License-Identifier: Apache-2.0
// The parts of `checkPlan`. Each assumes that the ones before it, in the order below, found
// nothing.
#pragma once

#include "ir/plan/Plan.h"
#include <optional>
#include <vector>

namespace shardc::check {

/// Bytes [begin, end) of a buffer.
struct Range {
  uint64_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
  bool overlaps(Range o) const { return begin < o.end && o.begin < end; }
};

/// A command of a program; positions run through all programs.
struct Place {
  unsigned program, command;
  uint64_t position;
  bool host = false; ///< not a command: the host reads an output after the program ended
};

/// 1. Enums, indices, sizes, shapes: every number of the plan means something, every operand lies
/// in its buffer, every buffer in its space.
llvm::Error checkBounds(const plan::Plan &plan);
/// 2. Buckets, parameters, inputs, outputs, constants, scalars.
llvm::Error checkTables(const plan::Plan &plan);
/// 3. Operands of one command against each other.
llvm::Error checkAliases(const plan::Plan &plan);
/// 4. Every access lies in its buffer's lifetime; buffers that share memory are ordered in time,
/// and so are accesses of one buffer: under happens-before, not by their place in the list.
llvm::Error checkHazards(const plan::Plan &plan);
/// 5. Nothing is read before it is written or given.
llvm::Error checkValues(const plan::Plan &plan);

/// "train: command 12 (matmul, l0/MatMul)".
std::string describe(const plan::Plan &plan, unsigned program, unsigned command);
std::string describe(const plan::Plan &plan, const Place &place);
/// "buffer 7 (l0.h)", non-printing characters escaped.
std::string describeBuffer(const plan::Plan &plan, uint32_t buffer);

/// The bytes that an operand may touch, from its buffer's start; nullopt: overflow or below 0.
std::optional<Range> touchedBytes(const plan::Ref &ref);
/// Strides as they are meant. Requires: `touchedBytes` is there.
llvm::SmallVector<int64_t, 4> stridesOf(const plan::Ref &ref);
/// Do no two elements of the operand share a byte? (Sufficient: strides nest.)
bool elementsAreDisjoint(const plan::Ref &ref);
/// Does the operand cover all bytes that it spans? Requires: disjoint elements.
bool isDense(const plan::Ref &ref);
/// The same, from the start of its space.
Range touchedAddresses(const plan::Plan &plan, const plan::Ref &ref);
/// Same addresses for the same indices.
bool sameLayout(const plan::Plan &plan, const plan::Ref &a, const plan::Ref &b);
/// Is input `index` written over, element by element, by a result of the command?
bool isOverwritten(const plan::Command &command, int index);

/// First position of each program, and at the end the number of all commands.
std::vector<uint64_t> programStarts(const plan::Plan &plan);

/// Happens-before over streams and events within a program; a program ends before the next begins.
class Order {
public:
  /// An error for a wait without an earlier signal, and for an event that is signalled twice.
  static llvm::Expected<Order> compute(const plan::Plan &plan);
  bool before(const Place &a, const Place &b) const;
  unsigned stream(const Place &place) const { return streams_[place.position]; }
  /// Are all commands on one stream?
  bool single() const { return numStreams_ <= 1; }

private:
  unsigned numStreams_ = 1;
  std::vector<uint8_t> streams_; ///< by position
  std::vector<uint32_t>
      clocks_; ///< position x streams: commands of that stream known to be done, own one included
};

} // namespace shardc::check
