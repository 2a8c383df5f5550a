// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/Pointwise.h"
#include "ir/base/ScalarExpr.h"

namespace shardc {

llvm::Expected<ScalarProgram> parseBody(const Op &op) {
  llvm::SmallVector<std::string> names;
  llvm::SmallVector<DType> dtypes;
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    names.push_back("x" + std::to_string(i));
    dtypes.push_back(op.operand(i)->type().dtype);
  }
  llvm::SmallVector<llvm::StringRef> nameRefs(names.begin(), names.end()), outputs;
  llvm::StringRef(op.attrs.getString("outputs")).split(outputs, ',');
  for (llvm::StringRef &name : outputs)
    name = name.trim();
  return parseScalarProgram(op.attrs.getString("body"), nameRefs, dtypes, outputs);
}

Cost pointwiseCost(const Op &op) {
  Cost cost;
  for (Value *value : op.operands())
    cost.bytes += double(value->type().numBytes());
  for (unsigned i = 0; i < op.numResults(); ++i) {
    cost.bytes += double(op.result(i)->type().numBytes());
    cost.flops += 4.0 * double(op.result(i)->type().numElements());
  }
  return cost;
}

} // namespace shardc
