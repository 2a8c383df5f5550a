// SPDX-License-Identifier: Apache-2.0
// adamw, adam (param, grad, m, v, grad_scale, scalars){decay_end, ranks} and sgd (param, grad, momentum?, grad_scale,
// scalars){decay_end, ranks} over flat arrays, in place, as on the host. Parameters and states are f32 or f64;
// gradients of any float type. With attribute rounded the last result is the updated parameters in 16 bits.
#include "runtime/cuda/Optimizers.h"
#include "runtime/cuda/Launch.h"
#include "runtime/host/UpdateShape.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

/// `required` says whether the states must be there.
bool checkOperands(Checks &c, const host::Binding &b, unsigned states, bool required, OptimizerWork &work) {
  host::UpdateShape shape;
  if (!(updateShape(c, b, states, required, shape) && checkFloat(c, b.in[1], "grad") &&
        (!shape.rounds || c.that(byteSize(b.out.back().dtype) == 2 && isFloat(b.out.back().dtype),
                                 "rounded parameters: wanted bf16 or f16"))))
    return false;
  const Array &param = b.in[0];
  work.type = elementType(param.dtype), work.gradType = elementType(b.in[1].dtype);
  work.param = param.data, work.grad = b.in[1].data;
  work.first = b.in[2].data, work.second = states > 1 ? b.in[3].data : nullptr;
  work.gradScale = b.in[2 + states].as<double>(), work.scalars = b.in[3 + states].as<double>();
  work.count = param.numElements(), work.decayEnd = shape.decayEnd, work.sliced = shape.sliced;
  if (shape.rounds)
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
