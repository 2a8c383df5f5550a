// SPDX-License-Identifier: Apache-2.0
// What is known about a kind of op, all in one struct; Ops.def lists the instances.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/Support/Error.h"

namespace shardc {

class GradContext;

/// Work of one op: floating point operations, and bytes read and written from memory.
struct Cost {
  double flops = 0, bytes = 0;
};

/// Tensors in, tensors out: evaluates an op whose operands are all constant.
using Evaluate = llvm::Expected<llvm::SmallVector<Tensor, 1>> (*)(const Op &, llvm::ArrayRef<const Tensor *>);

/// One ONNX node type that maps one to one. Anything more is in frontend/SpecialNodes*.cpp.
struct OnnxRule {
  struct AttrRule {
    const char *onnx; ///< name of the ONNX attribute
    const char *ours; ///< name of ours
    double otherwise; ///< ONNX's default (numbers), used where the node is silent
  };
  const char *node = nullptr;
  llvm::ArrayRef<AttrRule> attrs = {};
};

/// How the operands of an op may lie in memory (bits).
enum Layouts : uint8_t {
  kContiguous = 0, ///< row-major only
  kStrided = 1,    ///< any strides
  kMatrix = 2,     ///< any batch strides; of the last two dims at least one has stride 1
  kLastDim = 4,    ///< any strides, but stride 1 in the last dim
};

/// Communication: `start` hands data to a stream of its own; nothing may read the result, or write or free any operand,
/// before the `done` that follows it.
enum class Collective : uint8_t { None, Start, Done };

struct InPlace {
  int8_t operand = -1, result = -1;
};

struct OpDef {
  const char *mnemonic;
  /// Operand names; a trailing '?' marks optional ones, a trailing '*' on the last one any number.
  llvm::ArrayRef<const char *> operands = {};
  llvm::ArrayRef<const char *> results = {}; ///< default: one, "y"
  OnnxRule onnx = {};
  /// Pointwise ops: the value over a, b, c (operands broadcast against each other). See ir/base/ScalarExpr.h.
  const char *scalar = nullptr;
  /// Ops over rows, the dims from attribute `axis` on (the last dim where there is none): what they compute, as lines
  /// "name = expr;" over the names of operands and results, with M = 1 / (numbers in a row). [name|number] stands for an
  /// optional operand. See ir/base/ScalarRows.h.
  const char *rows = nullptr;
  uint8_t perRow = 0; ///< bits: operands of which a row has one number
  /// Reductions: as `rows`, over the dims before the last ones.
  const char *columns = nullptr;
  /// Types of the results; checks operands and attrs. The message needs no place: the builder adds it.
  llvm::Expected<Types> (*infer)(const Op &) = nullptr;
  /// Adds gradients of the operands; null with `notDifferentiable` set (the reason) or for ops after autodiff.
  void (*gradient)(GradContext &) = nullptr;
  const char *notDifferentiable = nullptr;
  Evaluate evaluate = nullptr; ///< pointwise ops fold by `scalar`
  Cost (*cost)(const Op &) = nullptr; ///< null: reads operands, writes results once
  /// A free re-reading of operand 0 with other dims and strides (reshape, transpose, slice, expand).
  bool view = false;
  /// Has effects (writes persistent state): never dead, never merged.
  bool effect = false;
  Collective collective = Collective::None;
  uint8_t layouts = kContiguous; ///< what the kernel accepts for its operands
  /// Result may take the operand's memory if that dies here (equal bytes), in order of preference.
  llvm::ArrayRef<InPlace> inPlace = {};
  /// Must take it: the op updates the operand (optimizer state, accumulation).
  bool inPlaceRequired = false;
  /// Bytes of scratch that a device's kernel may use; fixed in the plan.
  int64_t (*workspace)(const Op &) = nullptr;
};

/// Every op of Ops.def, in its order.
llvm::ArrayRef<const OpDef *> allOps();
const OpDef *findOp(llvm::StringRef mnemonic);

#define SHARDC_OP(NAME) extern const OpDef k##NAME;
#include "ir/ops/Ops.def"
#undef SHARDC_OP

} // namespace shardc
