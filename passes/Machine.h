// SPDX-License-Identifier: Apache-2.0
// What a plan runs on, as far as predictions need it: a roofline, links, and memory that no plan can use.
#pragma once

#include "ir/ops/OpDef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace shardc {

/// Rates are what kernels reach, not what data sheets say.
struct Machine {
  std::string name = {};
  double flops = 0;           ///< a second, 32-bit
  double flops64 = 0;         ///< a second, 64-bit
  double flops16 = 0;         ///< a second, 16-bit inputs
  double memoryBandwidth = 0; ///< bytes a second, read and written
  double commandUs = 0;       ///< of a command that does nothing
  double linkBandwidth = 0;   ///< bytes a second that a rank sends in a collective, all its peers together
  double linkLatencyUs = 0;   ///< of one collective
  double overlapSlowdown = 1; ///< computing takes so many times longer while a collective runs beside it
  uint64_t memoryBytes = 0;   ///< of a rank; 0: not known
  uint64_t floorBytes = 0;    ///< used outside the arenas: program, libraries, context
  /// What forward and backward work on 32-bit values is priced as: F32, or BF16 (16-bit rates, half the bytes in memory and on
  /// the wire), as it would be in mixed precision. The update's own work keeps its 32-bit state.
  DType priceAs = DType::F32;

  /// Of one command: the roofline. `dtype` is what it computes in.
  double microseconds(const Cost &cost, DType dtype = DType::F32, Phase phase = Phase::Forward) const;
  /// Of one collective on arrays of `dtype`, in which a rank sends `wireBytes`: alpha + beta * bytes.
  double collectiveMicroseconds(double wireBytes, DType dtype = DType::F32) const;
};

/// A built-in machine (`builtInMachines`), or a JSON file (anything with a '/' or ending in .json) that may name a built-in
/// one as its "base" and says what differs. Unknown keys are errors.
llvm::Expected<Machine> loadMachine(llvm::StringRef nameOrFile);
/// "cpu, h200, h200x2 ...": for messages. "-bf16" after the name of a GPU prices as bf16.
std::string builtInMachines();

} // namespace shardc
