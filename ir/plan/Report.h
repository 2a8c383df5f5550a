// SPDX-License-Identifier: Apache-2.0
// What people want to know of a plan, from the plan alone. All functions require a sound plan
// (checkPlan); all lines fit 100 columns.
#pragma once

#include "ir/plan/Plan.h"
#include <optional>

namespace shardc {

/// One screen: model, step, sharding, memory, time.
void printScreen(const plan::Plan &plan, llvm::raw_ostream &os);
/// More of it: inputs, outputs, buckets, programs by kernel.
void printDetails(const plan::Plan &plan, llvm::raw_ostream &os);
/// A line for each command: position, phase, kernel, first result, work, predicted time, place.
void printCommands(const plan::Plan &plan, llvm::raw_ostream &os);
/// A line for each buffer, largest first.
void printBuffers(const plan::Plan &plan, llvm::raw_ostream &os);
/// What lives at the peak: by layer and by reason; alike buffers together; largest first; and what would
/// lower it, cheapest first.
void printPeak(const plan::Plan &plan, llvm::raw_ostream &os);
/// The life of one tensor: where it lies, who writes and reads it, what is before and after it in its place. `name` is a parameter, a
/// buffer (its number, "%12" in the text form; its name; "layer: name"; what tables call it and those alike: "block.*: h") or a layer. Several that are called so: a table of them. An error for a
/// name that is none, with names that are near it.
llvm::Error printWhy(const plan::Plan &plan, llvm::StringRef name, llvm::raw_ostream &os);
/// What is different in the second plan: options, peak, bytes by kind and by layer, buffers that came and went.
void printDiff(const plan::Plan &before, const plan::Plan &after, llvm::StringRef beforeName, llvm::StringRef afterName,
               llvm::raw_ostream &os);
/// Memory, wire and time of several plans, a line for each: such as the stages of one model.
/// `names`: one for each plan. Requires: at least one.
void printComparison(llvm::ArrayRef<plan::Plan> plans, llvm::ArrayRef<std::string> names,
                     llvm::raw_ostream &os);
/// Why a plan does not fit: bytes at its peak, where that is, what lives there by kind, the ten largest groups of alike buffers, all in exact bytes, and
/// whether another packing could help. Requires: rankBytes(plan) > budget.
void printShortfall(const plan::Plan &plan, uint64_t budget, llvm::raw_ostream &os);
/// What plans of one model for several ranks and stages need, a line for each, beside what DeepSpeed's formulas say. `budget`: bytes that
/// a rank may take; 0: any. Requires: at least one.
void printEstimate(llvm::ArrayRef<plan::Plan> plans, uint64_t budget, llvm::raw_ostream &os);
/// All of it for programs: one JSON object with stable keys.
void printJson(const plan::Plan &plan, llvm::raw_ostream &os);

/// The command at the peak of a space: "train command 583 (backward), matmul, /m/lm_head/MatMul, layer lm_head".
std::string peakPlace(const plan::Plan &plan, uint32_t space);
/// "decoder.block.0: matmul_7": the name behind the layer, where it does not say that itself; without what an exporter put before it.
std::string nameInLayer(llvm::StringRef layer, llvm::StringRef name);
std::string fullName(const plan::Plan &plan, const plan::Buffer &buffer);
/// Live bytes by kind: at the peak of all spaces, and at that kind's own peak. Largest first.
struct KindBytes {
  plan::BufferKind kind;
  uint64_t atPeak, largest;
};
std::vector<KindBytes> memoryByKind(const plan::Plan &plan);
/// Arena bytes of all spaces, and their lower bounds.
uint64_t arenaBytes(const plan::Plan &plan);
uint64_t lowerBoundBytes(const plan::Plan &plan);
/// What a rank takes of its device: arenas there, and what its machine says lies beside them.
uint64_t rankBytes(const plan::Plan &plan);
/// Bytes of parameters, gradients and optimizer state on a rank by DeepSpeed's formulas (0.19: estimate_zero2_model_states_mem_needs and its
/// sister of stage 3, no offload), which are of 16-bit training. nullopt: it has none for the plan's stage.
std::optional<uint64_t> deepSpeedEstimate(const plan::Plan &plan);
/// (arena - bound) / bound, in percent; 0 for an empty plan.
double gapPercent(const plan::Plan &plan);

/// Equal collectives of one program together.
struct WireUse {
  std::string op;       ///< "all_gather", "reduce_scatter", "all_reduce"
  std::string program;
  std::string bucket;   ///< "": a scalar's
  uint64_t count = 0;   ///< in one update step (of eval: in one batch)
  uint64_t bytes = 0;   ///< of its whole array, all ranks' slices together
  uint64_t sent = 0;    ///< bytes that a rank sends, `count` times
  bool perStep() const { return program != "eval"; }
  bool isScalar() const { return bucket.empty(); }
};
/// In the plan's order.
std::vector<WireUse> wireUses(const plan::Plan &plan);
/// Bytes a rank sends in an update step: for buckets, and for scalars.
struct WireBytes {
  uint64_t buckets = 0, scalars = 0;
};
WireBytes wireBytesPerStep(const plan::Plan &plan);

} // namespace shardc
