// SPDX-License-Identifier: Apache-2.0
// A group of ops over rows as one kernel: a scalar program that also joins rows and columns (ScalarRows.h) over
// the operands x0, x1 ..., which broadcast to `dims`. Rows are the dims [axis, rank), 0 < axis. Attr `body` is
// the program, `outputs` its lines that leave: elements with `dims`; what is one number a row with 1 for the dims
// of a row; sums of columns [parts, dims of a row], for column_sums to join.
#include "ir/base/ScalarRows.h"
#include "ir/ops/Pointwise.h"
#include "ir/ops/Reference.h"
#include <cmath>

namespace shardc {
namespace {

struct RowsDims {
  Dims dims;
  int64_t axis, parts;

  Dims perRow() const {
    Dims result = dims;
    std::fill(result.begin() + axis, result.end(), 1);
    return result;
  }
  Dims columns() const {
    Dims result{parts};
    result.append(dims.begin() + axis, dims.end());
    return result;
  }
};

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  check.text("body");
  check.text("outputs");
  RowsDims shape{check.ints("dims"), 0, check.integer("parts", 1)};
  if (check.failed())
    return check.error();
  shape.axis = check.axis("axis", shape.dims.size());
  if (shape.axis < 1)
    check.fail("attribute 'axis': got " + llvm::Twine(shape.axis) + ", wanted rows: at least 1");
  if (shape.parts < 1 || shape.parts > kMostColumnParts)
    check.fail("attribute 'parts': got " + llvm::Twine(shape.parts) + ", wanted 1 to " + llvm::Twine(kMostColumnParts));
  if (numElements(shape.dims) == 0)
    check.fail("attribute 'dims': got " + formatDims(shape.dims) + ", wanted at least one element");
  for (unsigned i = 0; i < op.numOperands(); ++i)
    if (broadcastDims(shape.dims, check.in(i).dims) != shape.dims)
      check.fail("operand " + llvm::Twine(i) + ": got dims " + formatDims(check.in(i).dims) +
                 ", wanted ones that broadcast to " + formatDims(shape.dims));
  if (check.failed())
    return check.error();
  llvm::Expected<ScalarProgram> program = parseBody(op);
  if (!program)
    return program.takeError();
  if (std::string wrong = checkRows(*program); !wrong.empty()) {
    check.fail("body: " + wrong);
    return check.error();
  }
  std::vector<RowKind> kinds = rowKinds(*program);
  Types types;
  for (int16_t output : program->outputs)
    types.push_back(Type(program->code[output].dtype, kinds[output] == RowKind::Element ? shape.dims
                                                      : kinds[output] == RowKind::Row   ? shape.perRow()
                                                                                        : shape.columns()));
  return check.done(types);
}

/// Joins each row of x, which has all dims, or with `parts` its columns.
Tensor join(const Tensor &x, const RowsDims &shape, ScalarCode code) {
  std::vector<double> from = toDoubles(x);
  const size_t n = numElements(llvm::ArrayRef(shape.dims).drop_front(shape.axis)), rows = n ? from.size() / n : 0;
  if (code == ScalarCode::ColumnSum) {
    std::vector<double> to(shape.parts * n);
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < n; ++i)
        to[r % shape.parts * n + i] += from[r * n + i];
    return fromDoubles(x.dtype(), shape.columns(), to);
  }
  std::vector<double> to(numElements(shape.perRow()), code == ScalarCode::RowMax ? -INFINITY : 0);
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < n; ++i) {
      double value = from[r * n + i];
      to[r] = code == ScalarCode::RowSum ? to[r] + value : to[r] > value || std::isnan(to[r]) ? to[r] : value;
    }
  return fromDoubles(x.dtype(), shape.perRow(), to);
}

/// What leads to register `output`, alone: other instructions may read what has other dims.
ScalarProgram partFor(const ScalarProgram &program, int16_t output) {
  ScalarProgram part{{program.code.begin(), program.code.begin() + output + 1}, {output}};
  std::vector<bool> used(output + 1);
  used[output] = true;
  for (int i = output; i >= 0; --i)
    if (used[i])
      for (int16_t arg : part.code[i].args)
        if (arg >= 0)
          used[arg] = true;
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      part.code[i] = {.code = ScalarCode::Number, .dtype = DType::Bool};
  return part;
}

llvm::Expected<Tensors> evaluateRows(const Op &op, TensorArgs in) {
  llvm::Expected<ScalarProgram> program = parseBody(op);
  if (!program)
    return program.takeError();
  if (llvm::Error error = refuseRandom(*program))
    return error;
  const Ints &dims = op.attrs.getInts("dims");
  RowsDims shape{dims, normalAxis(op.attrs.getInt("axis"), dims.size()), op.attrs.getInt("parts", 1)};
  llvm::SmallVector<const Tensor *> inputs(in.begin(), in.end());
  std::vector<std::unique_ptr<Tensor>> joined;
  // One after the other, sums become operands: what is left is pointwise.
  for (size_t i = 0; i < program->code.size(); ++i) {
    ScalarInstr &instr = program->code[i];
    if (instr.code < ScalarCode::RowSum)
      continue;
    Tensor x = evaluate(partFor(*program, instr.args[0]), inputs, dims);
    joined.push_back(std::make_unique<Tensor>(join(x, shape, instr.code)));
    instr = {.code = ScalarCode::Input, .dtype = instr.dtype, .input = int64_t(inputs.size())};
    inputs.push_back(joined.back().get());
  }
  Tensors results;
  for (unsigned o = 0; o < op.numResults(); ++o)
    results.push_back(evaluate(partFor(*program, program->outputs[o]), inputs, op.result(o)->type().dims));
  return results;
}

constexpr const char *kOperands[] = {"x*"};

} // namespace

constinit const OpDef kFusedRows = {.mnemonic = "fused_rows",
                                    .operands = kOperands,
                                    .infer = infer,
                                    .notDifferentiable = "it is made after the gradients",
                                    .evaluate = evaluateRows,
                                    .layouts = kStrided,
                                    .inPlace = kAnyOperand};

} // namespace shardc
