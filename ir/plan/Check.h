// SPDX-License-Identifier: Apache-2.0
// The parts of `checkPlan`. Each assumes that the ones before it, in the order below, found
// nothing.
#pragma once

#include "ir/plan/Plan.h"
#include "llvm/ADT/STLFunctionalExtras.h"
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
/// 3. Collectives: operands, communicators, one order on each; each is waited for.
llvm::Error checkCollectives(const plan::Plan &plan);
/// 4. Operands of one command against each other.
llvm::Error checkAliases(const plan::Plan &plan);
/// 5. Every access lies in its buffer's lifetime; buffers that share memory are ordered in time,
/// and so are accesses of one buffer: under happens-before, not by their place in the list.
llvm::Error checkHazards(const plan::Plan &plan);
/// 6. Regions tile their space, no buffer lies in two, their bounds are what lives in them.
llvm::Error checkRegions(const plan::Plan &plan);
/// 7. Nothing is read before it is written or given.
llvm::Error checkValues(const plan::Plan &plan);
/// 8. Operands in the memory of buckets are parameters, or whole buckets, or the rank's slices.
llvm::Error checkPlaces(const plan::Plan &plan);
/// 9. Every trained bucket is reduced, updated and gathered, once, as the stage wants.
llvm::Error checkTraining(const plan::Plan &plan);
/// 10. Every operand means the content that is there: as many earlier commands wrote it as it says.
llvm::Error checkVersions(const plan::Plan &plan);
/// 11. What is picked from by index has a place for every index that an input or a constant may hold.
llvm::Error checkIndices(const plan::Plan &plan);

/// "train: command 12 (matmul, l0/MatMul)".
std::string describe(const plan::Plan &plan, unsigned program, unsigned command);
std::string describe(const plan::Plan &plan, const Place &place);
/// "buffer 7 (l0.h)", non-printing characters escaped.
std::string describeBuffer(const plan::Plan &plan, uint32_t buffer);

/// The same error with its place before it; `where` is asked for errors only. Success stays
/// success.
llvm::Error at(llvm::Error error, llvm::function_ref<std::string()> where);

/// The ZeRO stage that matters: one rank has nobody to share with.
inline unsigned stageOf(const plan::Plan &plan) { return plan.ranks() > 1 ? plan.zero() : 0; }

/// The bytes that an operand may touch, from its buffer's start (of rank 0, where it is a slice);
/// nullopt: overflow or below 0.
std::optional<Range> touchedBytes(const plan::Ref &ref);
/// What is counted as touched: of a rank's slice, all slices. Requires: in bounds.
Range tiledBytes(const plan::Plan &plan, const plan::Ref &ref);
/// Is `slice` slice r of the dense operand `whole`, in its memory?
bool isSliceOf(const plan::Plan &plan, const plan::Ref &slice, const plan::Ref &whole);
uint64_t numBytes(const plan::Ref &ref);
/// Strides as they are meant. Requires: `touchedBytes` is there.
llvm::SmallVector<int64_t, 4> stridesOf(const plan::Ref &ref);
/// Do no two elements of the operand share a byte? (Sufficient: strides nest.)
bool elementsAreDisjoint(const plan::Ref &ref);
/// Does the operand cover all bytes that it spans? Requires: disjoint elements.
bool isDense(const plan::Ref &ref);
/// `tiledBytes`, from the start of its space.
Range touchedAddresses(const plan::Plan &plan, const plan::Ref &ref);
/// Are they parts of the same rows that share no byte, as columns of a matrix are? Their spans may well overlap.
bool areSideBySide(const plan::Plan &plan, const plan::Ref &a, const plan::Ref &b);
/// Same addresses for the same indices.
bool sameLayout(const plan::Plan &plan, const plan::Ref &a, const plan::Ref &b);
/// Is input `index` written over, element by element, by a result of the command?
bool isOverwritten(const plan::Command &command, int index);

/// Kinds of collective commands, by their kernel.
bool isGather(const plan::Command &command);
bool isReduceScatter(const plan::Command &command);
bool isAllReduce(const plan::Command &command);
bool isStart(const plan::Command &command); ///< one of the three
bool isDone(const plan::Command &command);
/// Does the micro-step belong to training, and does it complete the gradients of an update?
bool isTraining(const plan::Program &program);
bool isLastStep(const plan::Program &program);

/// First position of each program, and at the end the number of all commands.
std::vector<uint64_t> programStarts(const plan::Plan &plan);

/// Happens-before over streams and events within a program; a program ends before the next begins.
class Order {
public:
  /// An error for a wait without an earlier signal, and for an event that is signalled twice. (That
  /// every signal is waited for is checked after the hazards.)
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
