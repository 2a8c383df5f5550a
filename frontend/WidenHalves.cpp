// SPDX-License-Identifier: Apache-2.0
#include "frontend/WidenHalves.h"
#include "ir/graph/Builder.h"
#include "ir/graph/Fold.h"
#include "ir/ops/Reference.h"
#include <cmath>
#include <limits>

namespace shardc {

static Type widened(Type type) {
  type.dtype = wideType(type.dtype);
  return type;
}

static Tensor widened(const Tensor &tensor) {
  constexpr double kMost = 65504;
  std::vector<double> values = toDoubles(tensor);
  if (tensor.dtype() == DType::F16)
    for (double &value : values)
      if (std::abs(value) == kMost)
        value = std::copysign(std::numeric_limits<float>::max(), value);
  return fromDoubles(DType::F32, tensor.dims(), values);
}

bool widenHalves(Graph &graph) {
  bool found = false;
  for (Parameter &p : graph.parameters)
    p.type = widened(p.type);
  for (auto it = graph.ops().begin(); it != graph.ops().end();) {
    Op &op = *it++;
    if (const Tensor *tensor = op.is(kConstant) ? constantOf(op.result()) : nullptr; tensor && isHalf(tensor->dtype())) {
      Builder b(graph, &op);
      b.stampLike(op);
      Value *made = b.constant(widened(*tensor));
      std::string name = op.result()->name().str();
      graph.replaceAllUses(op.result(), made);
      graph.erase(&op);
      graph.rename(made, name);
      continue;
    }
    if (op.is(kCast))
      op.attrs.set("to", toString(wideType(*parseDType(op.attrs.getString("to")))).str());
    const bool source = op.is(kInput) || op.is(kParam) || op.is(kConstant);
    Types types = source || !op.numResults() ? Types{} : llvm::cantFail(op.def().infer(op));
    for (unsigned i = 0; i < op.numResults(); ++i) {
      Value *v = op.result(i);
      found |= isHalf(v->type().dtype);
      v->setType(source ? widened(v->type()) : types[i]);
    }
  }
  return found;
}

} // namespace shardc
