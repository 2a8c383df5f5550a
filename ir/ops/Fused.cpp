// SPDX-License-Identifier: Apache-2.0
// A chain of pointwise ops as one kernel. Attr `body` is a scalar program over the operands x0, x1
// ... (ir/base/ScalarExpr.h), `outputs` the lines that leave it ("t3,t5"), `dims` the dims of every
// result (default: the operands broadcast).
#include "ir/base/ScalarRows.h"
#include "ir/ops/Pointwise.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  check.text("body");
  check.text("outputs");
  if (check.failed())
    return check.error();
  Dims dims;
  if (op.attrs.has("dims"))
    dims = check.ints("dims");
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    std::optional<Dims> both = broadcastDims(dims, check.in(i).dims);
    if (!both || (op.attrs.has("dims") && *both != dims))
      check.fail("operand " + llvm::Twine(i) + ": got dims " + formatDims(check.in(i).dims) +
                 ", wanted ones that broadcast to " + formatDims(dims));
    else
      dims = *both;
  }
  if (check.failed())
    return check.error();
  llvm::Expected<ScalarProgram> program = parseBody(op);
  if (!program)
    return program.takeError();
  if (joinsElements(*program)) {
    check.fail("body: got a sum over rows, wanted pointwise functions");
    return check.error();
  }
  Types types;
  for (int16_t output : program->outputs)
    types.push_back(Type(program->code[output].dtype, dims));
  return check.done(types);
}

llvm::Expected<Tensors> evaluateFused(const Op &op, TensorArgs in) {
  llvm::Expected<ScalarProgram> program = parseBody(op);
  if (!program)
    return program.takeError();
  if (llvm::Error error = refuseRandom(*program))
    return error;
  Tensors results;
  llvm::SmallVector<int16_t, 2> outputs = program->outputs;
  for (unsigned i = 0; i < op.numResults(); ++i) {
    program->outputs = {outputs[i]};
    results.push_back(evaluate(*program, in, op.result(i)->type().dims));
  }
  return results;
}

constexpr const char *kOperands[] = {"x*"};

} // namespace

constinit const OpDef kFused = {.mnemonic = "fused",
                                .operands = kOperands,
                                .infer = infer,
                                .notDifferentiable = "it is made after the gradients",
                                .evaluate = evaluateFused,
                                .cost = pointwiseCost,
                                .layouts = kStrided,
                                .inPlace = kAnyOperand};

} // namespace shardc
