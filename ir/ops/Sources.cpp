// SPDX-License-Identifier: Apache-2.0
// Where values come from: inputs, parameters, constants, the scalars of a step.
#include "ir/ops/StepScalars.h"

namespace shardc {
namespace {

/// Inputs and parameters are made with their type; there is nothing to infer it from.
llvm::Expected<Types> inferDeclared(const Op &op) {
  OpCheck check(op);
  check.text("name");
  if (op.numResults() != 1)
    check.fail("type of the result: got none, wanted one given with the op");
  if (check.failed())
    return check.error();
  return check.done({op.result()->type()});
}

llvm::Expected<Types> inferConstant(const Op &op) {
  const Attr *value = op.attrs.find("value");
  OpCheck check(op);
  if (!value || !std::holds_alternative<Tensor>(*value)) {
    check.fail("attribute 'value': got none, wanted a tensor");
    return check.error();
  }
  const Tensor &tensor = std::get<Tensor>(*value);
  return Types{Type(tensor.dtype(), tensor.dims())};
}

llvm::Expected<llvm::SmallVector<Tensor, 1>> evaluateConstant(const Op &op,
                                                              llvm::ArrayRef<const Tensor *>) {
  return llvm::SmallVector<Tensor, 1>{op.attrs.getTensor("value")};
}

llvm::Expected<Types> inferScalars(const Op &) { return Types{Type(DType::F64, {step::kCount})}; }

Cost noCost(const Op &) { return {}; }
constexpr const char *kSource = "it has no operands";

} // namespace

constinit const OpDef kInput = {
    .mnemonic = "input", .infer = inferDeclared, .notDifferentiable = kSource, .cost = noCost};
constinit const OpDef kParam = {
    .mnemonic = "param", .infer = inferDeclared, .notDifferentiable = kSource, .cost = noCost};
constinit const OpDef kConstant = {.mnemonic = "constant",
                                   .infer = inferConstant,
                                   .notDifferentiable = kSource,
                                   .evaluate = evaluateConstant,
                                   .cost = noCost};
constinit const OpDef kScalars = {
    .mnemonic = "scalars", .infer = inferScalars, .notDifferentiable = kSource, .cost = noCost};

} // namespace shardc
