// SPDX-License-Identifier: Apache-2.0
// adamw, adam (param, grad, m, v, grad_scale, scalars){decay_end, ranks} and sgd (param, grad, momentum?, grad_scale,
// scalars){decay_end, ranks} over flat arrays, in place, as on the host. Parameters and states are f32 or f64;
// gradients of any float type. With attribute rounded the last result is the updated parameters in 16 bits.
#include "runtime/cuda/Optimizers.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/Launch.h"
#include "llvm/Support/MathExtras.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

/// `required` says whether the states must be there.
bool checkOperands(Checks &c, const host::Binding &b, unsigned states, bool required, OptimizerWork &work) {
  if (!c.that(b.in.size() == 4 + states, "number of operands: wanted " + std::to_string(4 + states)))
    return false;
  unsigned present = 0;
  for (unsigned i = 0; i < b.in.size(); ++i) {
    bool state = i >= 2 && i < 2 + states;
    if (!c.that(b.in[i] || (state && !required), "operand " + std::to_string(i) + " is absent"))
      return false;
    present += state && b.in[i];
  }
  const Array &param = b.in[0];
  int64_t ranks, elements, decayEnd;
  const size_t rounded = c.has("rounded") ? 1 : 0;
  if (!(c.that(b.out.size() >= 1 + present + rounded && b.out.size() <= 1 + states + rounded,
               "number of results: wanted param, the states and what is rounded") &&
        (!rounded || (c.that(byteSize(b.out.back().dtype) == 2 && isFloat(b.out.back().dtype),
                             "rounded parameters: wanted bf16 or f16") &&
                      c.dims(b.out.back(), param.dims) && c.contiguous(b.out.back()))) &&
        c.real(param) && checkFloat(c, b.in[1], "grad") && c.intAttr("decay_end", decayEnd) &&
        c.intAttr("ranks", ranks, 1) &&
        c.that(ranks >= 1 && !llvm::MulOverflow(param.numElements(), ranks, elements),
               "attribute ranks: wanted at least 1") &&
        c.that(decayEnd >= 0 && decayEnd <= elements, "attribute decay_end: wanted an element of the parameters") &&
        c.dtype(b.in[2 + states], DType::F64) && c.dims(b.in[2 + states], {}) &&
        c.dtype(b.in[3 + states], DType::F64) && c.dims(b.in[3 + states], {kNumScalars}) &&
        c.contiguous(b.in[3 + states])))
    return false;
  for (unsigned i = 0; i < 2 + states; ++i)
    if (b.in[i] && !(c.dims(b.in[i], param.dims) && (i == 1 || c.dtype(b.in[i], param.dtype)) && c.contiguous(b.in[i])))
      return false;
  // Results are the memory of what they update.
  llvm::SmallVector<std::pair<unsigned, unsigned>> same = {{0, 0}};
  for (unsigned i = 0; i < states; ++i)
    same.push_back({1 + i, 2 + i});
  for (auto [o, i] : same)
    if (o + rounded < b.out.size() &&
        !c.that((!b.out[o] && !b.in[i]) || sameArray(b.out[o], b.in[i]),
                "result " + std::to_string(o) + ": wanted the memory of operand " + std::to_string(i)))
      return false;
  if (!c.apart(same))
    return false;
  work.type = elementType(param.dtype), work.gradType = elementType(b.in[1].dtype);
  work.param = param.data, work.grad = b.in[1].data;
  work.first = b.in[2].data, work.second = states > 1 ? b.in[3].data : nullptr;
  work.gradScale = b.in[2 + states].as<double>(), work.scalars = b.in[3 + states].as<double>();
  work.count = param.numElements(), work.decayEnd = decayEnd, work.sliced = ranks > 1;
  if (rounded)
    work.rounded = anyFloats(b.out.back());
  work.wide = reinterpret_cast<uintptr_t>(work.rounded.data) % 8 == 0;
  for (unsigned i = 0; i < 2 + states; ++i)
    work.wide = work.wide && reinterpret_cast<uintptr_t>(b.in[i].data) % (4 * byteSize(b.in[i].dtype)) == 0;
  return true;
}

BoundKernel bindOptimizer(const host::Binding &b, Device &device, Optimizer kind, const char *name) {
  Checks c(b);
  OptimizerWork work = {};
  work.kind = kind;
  const bool sgd = kind == Optimizer::Sgd;
  if (!checkOperands(c, b, sgd ? 1 : 2, /*required=*/!sgd, work))
    return c.take();
  return launchKernel(enqueueOptimizer, name, work, b, device);
}

} // namespace

BoundKernel bindAdamW(const host::Binding &b, Device &device) {
  return bindOptimizer(b, device, Optimizer::AdamW, "adamw");
}
BoundKernel bindAdam(const host::Binding &b, Device &device) {
  return bindOptimizer(b, device, Optimizer::Adam, "adam");
}
BoundKernel bindSgd(const host::Binding &b, Device &device) { return bindOptimizer(b, device, Optimizer::Sgd, "sgd"); }

} // namespace shardc::cuda
