// SPDX-License-Identifier: Apache-2.0
// Scalar programs: what a pointwise op or a fused group computes for one element.
//
// Text:  program := { name ":" dtype "=" expr ";" }
//        expr    := C's conditional, logical, comparison, additive, multiplicative and unary
//                   operators with C's precedence, numbers, names, and calls
//                   pow max min mod abs sign exp log sqrt sin cos tanh erf ceil floor round
//                   isnan isinf, and cast-like f32(x) f64(x) f16(x) bf16(x) i32(x) i64(x) u8(x) bool(x)
//                   keep(p, id, batch_major): 0 or 1/(1-p), drawn for the element (Philox)
//                   rowsum(x) rowmax(x) colsum(x): over the elements of a row, and over rows (ScalarRows.h)
// Names are inputs (a, b, c of an op; x0, x1 ... of a fused group), earlier lines (t0, t1 ...), inf or nan.
// A line converts to its type; inside an expression types must agree, only numbers and keep adapt.
// round is to nearest even; max and min are NaN if one operand is; float to integer truncates and saturates. Floats are computed in their own type (f16 and bf16: in f32, and rounded where
// a line or cast gives them that type); i32, i64 and u8 in that type with wrap-around; % and mod follow
// ONNX Mod (integer: sign of divisor; float: fmod). Division of integers truncates; by zero gives 0.
#pragma once

#include "ir/base/Tensor.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace shardc {

enum class ScalarCode : uint8_t {
  Input, Number, Add, Sub, Mul, Div, Mod, Neg, Pow, Max, Min, Abs, Sign, Exp, Log, Sqrt, Sin, Cos, Tanh,
  Erf, Ceil, Floor, Round, IsNan, IsInf, Equal, Less, LessEqual, Greater, GreaterEqual, And, Or, Not,
  Select, Convert, Keep, RowSum, RowMax, ColumnSum
};

/// Straight-line code: instruction i defines register i. Shared subexpressions are computed once.
struct ScalarInstr {
  ScalarCode code;
  DType dtype;                 ///< of the register; operands of arithmetic have the same, Select's arms too
  int16_t args[3] = {-1, -1, -1};
  double number = 0;           ///< Number: the value; Keep: p
  int64_t input = 0;           ///< Input: index; Keep: id
  bool batchMajor = false;     ///< Keep
};

struct ScalarProgram {
  std::vector<ScalarInstr> code;
  llvm::SmallVector<int16_t, 2> outputs; ///< registers
};

/// Parses `text`. `inputs` are the types of the inputs, called by `inputNames`; `outputs` names the lines that leave.
/// `parameters` are further names with constant values (an op's attributes).
/// Numbers take the type of what they meet (a float op's dtype); an error says the column.
struct NamedNumber {
  llvm::StringRef name;
  double value;
};
llvm::Expected<ScalarProgram> parseScalarProgram(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> inputNames,
                                                 llvm::ArrayRef<DType> inputs, llvm::ArrayRef<llvm::StringRef> outputs,
                                                 llvm::ArrayRef<NamedNumber> parameters = {});
/// One expression over a, b, c with result type `result`: what OpDef::scalar holds.
llvm::Expected<ScalarProgram> parseScalarExpr(llvm::StringRef text, llvm::ArrayRef<DType> inputs, DType result,
                                              llvm::ArrayRef<NamedNumber> parameters = {});

/// Runs a program over dense operands that broadcast to `dims`. For folding: plain, scalar, libm. Keep is refused.
Tensor evaluate(const ScalarProgram &program, llvm::ArrayRef<const Tensor *> inputs, llvm::ArrayRef<int64_t> dims);

} // namespace shardc
