// SPDX-License-Identifier: Apache-2.0
// Definitions of pointwise ops in one line each.
#pragma once

#include "ir/graph/Builder.h"
#include "ir/graph/Fold.h"
#include "ir/ops/Infer.h"

namespace shardc {

struct ScalarProgram;

/// The program of a fused op: attributes `body`, over the operands x0, x1 ..., and `outputs`. Requires: it has both.
llvm::Expected<ScalarProgram> parseBody(const Op &op);

/// Reads and writes once; a handful of floating point operations an element.
Cost pointwiseCost(const Op &op);

/// The gradient is zero wherever there is one (sign, floor ...): nothing is set, as torch does.
/// Static, since GCC with -fsanitize does not take an inline function's address for a constant.
static inline void zeroGradient(GradContext &) {}

/// A fused op's result may lie where any of its first operands does that is as long.
inline constexpr InPlace kAnyOperand[] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0},
                                          {0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}};

inline constexpr const char *kTruthValue = "its result is a truth value";

constexpr OpDef pointwise(const char *mnemonic, const char *onnx, const char *scalar,
                          llvm::ArrayRef<const char *> operands,
                          llvm::Expected<Types> (*infer)(const Op &),
                          void (*gradient)(GradContext &)) {
  OpDef def{.mnemonic = mnemonic};
  def.operands = operands;
  def.onnx.node = onnx;
  def.scalar = scalar;
  def.infer = infer;
  def.gradient = gradient;
  if (!gradient)
    def.notDifferentiable = kTruthValue;
  def.cost = pointwiseCost;
  def.layouts = kStrided;
  return def;
}

/// One operand, of float type unless `infer` says otherwise.
constexpr OpDef pointwise1(const char *mnemonic, const char *onnx, const char *scalar,
                           void (*gradient)(GradContext &),
                           llvm::Expected<Types> (*infer)(const Op &) = inferSameFloat) {
  return pointwise(mnemonic, onnx, scalar, kNamesA, infer, gradient);
}

constexpr OpDef pointwise2(const char *mnemonic, const char *onnx, const char *scalar,
                           void (*gradient)(GradContext &),
                           llvm::Expected<Types> (*infer)(const Op &) = inferPointwise) {
  return pointwise(mnemonic, onnx, scalar, kNamesAB, infer, gradient);
}

} // namespace shardc
