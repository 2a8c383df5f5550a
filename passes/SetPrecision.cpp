// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/OpDef.h"
#include "passes/Passes.h"
#include "passes/precision/Narrow.h"

namespace shardc {

static Tensor widen(const Tensor &t) {
  Tensor wide(DType::F64, t.dims());
  for (int64_t i = 0, n = t.numElements(); i < n; ++i)
    wide.mutableData<double>()[i] = t.asDouble(i);
  return wide;
}

static void widenAll(Graph &graph) {
  for (Op &op : graph.ops()) {
    for (unsigned i = 0; i < op.numResults(); ++i)
      if (op.result(i)->type().dtype == DType::F32)
        op.result(i)->setType(Type(DType::F64, op.result(i)->type().dims));
    if (op.is(kConstant) && op.attrs.getTensor("value").dtype() == DType::F32)
      op.attrs.set("value", widen(op.attrs.getTensor("value")));
    if (op.is(kCast) && op.attrs.getString("to") == "f32")
      op.attrs.set("to", std::string("f64"));
  }
  for (Parameter &p : graph.parameters)
    if (p.type.dtype == DType::F32)
      p.type.dtype = DType::F64;
}

llvm::Error setPrecision(Graph &graph, const CompileOptions &options) {
  if (options.precision == Precision::Fp64)
    widenAll(graph);
  if (options.precision == Precision::Tf32)
    for (Op &op : graph.ops())
      if ((op.is(kMatMul) || op.is(kAttention) || op.is(kRelativeAttention)) && op.result()->type().dtype == DType::F32)
        op.attrs.set("tf32", int64_t(1));
  if (options.precision == Precision::Bf16 || options.precision == Precision::Fp16)
    precision::narrowValues(graph, options.precision == Precision::Bf16 ? DType::BF16 : DType::F16);
  return llvm::Error::success();
}

} // namespace shardc
