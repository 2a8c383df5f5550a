// SPDX-License-Identifier: Apache-2.0
// What people want to know of a plan, from the plan alone. All functions require a sound plan
// (checkPlan); all lines fit 100 columns.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// One screen: model, step, sharding, memory, time.
void printScreen(const plan::Plan &plan, llvm::raw_ostream &os);
/// More of it: inputs, outputs, buckets, programs by kernel.
void printDetails(const plan::Plan &plan, llvm::raw_ostream &os);
/// A line for each command: position, phase, kernel, first result, work, predicted time, place.
void printCommands(const plan::Plan &plan, llvm::raw_ostream &os);
/// A line for each buffer, largest first.
void printBuffers(const plan::Plan &plan, llvm::raw_ostream &os);
/// What lives at the peak, alike ones together, largest first, and what would lower it, cheapest
/// first.
void printPeak(const plan::Plan &plan, llvm::raw_ostream &os);
/// All of it for programs: one JSON object with stable keys.
void printJson(const plan::Plan &plan, llvm::raw_ostream &os);

/// "decoder.block.0: matmul_7": the name, after the layer where the name does not say it.
std::string fullName(const plan::Plan &plan, const plan::Buffer &buffer);
/// Live bytes by kind at the peak of all spaces.
struct PeakByKind {
  plan::BufferKind kind;
  uint64_t bytes;
};
std::vector<PeakByKind> peakByKind(const plan::Plan &plan);
/// Arena bytes of all spaces, and their lower bounds.
uint64_t arenaBytes(const plan::Plan &plan);
uint64_t lowerBoundBytes(const plan::Plan &plan);
/// (arena - bound) / bound, in percent; 0 for an empty plan.
double gapPercent(const plan::Plan &plan);

} // namespace shardc
