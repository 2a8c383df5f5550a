// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for a scalar program over the elements of broadcast and strided operands.
//
// A thread has units of `width` elements that are neighbours in the innermost dim. What the source depends on
// is the program and how each operand is reached; sizes, strides, addresses and the ids of dropouts are
// arguments, so that a plan needs few kernels.
#pragma once

#include "ir/base/ScalarExpr.h"

namespace shardc::cuda {

enum class FusedAccess : uint8_t {
  Unused,
  Constant,  ///< one element for all
  Flat,      ///< element i of the sequence is element i of memory
  Walked,    ///< by strides; the innermost is 1, or the width is 1
  WalkedSame ///< by strides; one element for a whole unit
};

struct FusedOperand {
  DType dtype = DType::F32;
  FusedAccess access = FusedAccess::Flat;
  bool walked() const { return access == FusedAccess::Walked || access == FusedAccess::WalkedSame; }
};

struct FusedLayout {
  llvm::SmallVector<FusedOperand, 4> inputs;
  llvm::SmallVector<FusedOperand, 2> outputs;
  unsigned rank = 0;  ///< dims of the walk; 0 if none is walked
  unsigned width = 1; ///< 1, 2, 4 or 8
  bool wide = false;  ///< 64-bit places
};

/// The kernel is extern "C", called kFusedName, and takes one struct of 64-bit words:
///   addresses of the inputs, of the outputs; number of units; elements; address of the step's scalars;
///   the id of each dropout, in the order of `program.code`;
///   for each dim of the walk but the outermost, innermost first (the innermost in units): divisor, and
///   Divider's magic + 2^32 shift; for each walked operand, inputs first: `rank` strides in elements,
///   innermost first (that in units).
constexpr const char *kFusedName = "fused";
constexpr int kFusedThreads = 256;
/// Deterministic: the same arguments give the same text.
std::string fusedSource(const ScalarProgram &program, const FusedLayout &layout);

} // namespace shardc::cuda
