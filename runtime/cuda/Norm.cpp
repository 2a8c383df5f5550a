// SPDX-License-Identifier: Apache-2.0
// layer_norm(x, scale?, bias?){axis, eps} -> y, mean, rstd; rms_norm(x, scale){axis, eps} -> y, rstd; and
// layer_norm_grad(dy, x, mean, rstd, scale?){axis, affine} -> dx[, dscale, dbias]; rms_norm_grad(dy, x, rstd,
// scale){axis, affine} -> dx[, dscale]. Rows are the dims [axis, rank). Beside 16-bit storage, f32 is allowed
// for every operand; dx has the type of dy.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/NormLaunch.h"
#include "runtime/host/Shapes.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::NormShape;

/// f64 goes with f64; f32, f16 and bf16 go together.
bool goesWith(host::Checks &c, const Array &a, DType x) {
  return checkFloat(c, a, "array") &&
         c.that((a.dtype == DType::F64) == (x == DType::F64), "types: wanted f64 beside f64 only");
}
/// Equal types, or f32 beside 16 bits: not f16 beside bf16.
bool pairs(host::Checks &c, const Array &a, DType x) {
  return goesWith(c, a, x) && (a.dtype == DType::F32 || x == DType::F32 || c.dtype(a, x));
}

/// scale, bias and their gradients; may be absent.
bool normRow(host::Checks &c, const Array &a, const NormShape &shape) {
  return !a || (c.dims(a, shape.row) && goesWith(c, a, shape.dtype) && c.contiguous(a));
}
/// mean and rstd.
bool normStatistic(host::Checks &c, const Array &a, const NormShape &shape) {
  return c.dims(a, shape.rows) && goesWith(c, a, shape.dtype) && c.contiguous(a);
}

/// May packs of `width` elements be loaded from and stored to all the arrays, at every multiple of `width`?
bool packs(const NormShape &shape, int64_t width, llvm::ArrayRef<const Array *> arrays) {
  return shape.length() % width == 0 && llvm::all_of(arrays, [&](const Array *a) {
           return !*a || aligned(a->data, std::min<int64_t>(16, width * byteSize(a->dtype)));
         });
}

BoundKernel bindForward(const host::Binding &b, bool centred) {
  host::Checks c(b);
  NormShape shape;
  double eps;
  const size_t statistics = centred ? 2 : 1;
  if (!(c.arity(centred ? 1 : 2, centred ? 3 : 2, 1 + statistics) && checkFloat(c, b.in[0], "x") && normShape(c, b.in[0], shape) &&
        c.floatAttr("eps", eps) && c.that(eps >= 0, "attribute eps: wanted at least 0") &&
        normRow(c, c.in(1), shape) && normRow(c, c.in(2), shape) && c.dims(b.out[0], b.in[0].dims) &&
        pairs(c, b.out[0], shape.dtype) && normStatistic(c, b.out[1], shape) &&
        (!centred || (normStatistic(c, b.out[2], shape) && c.dtype(b.out[2], b.out[1].dtype))) &&
        c.denseResults() && c.apart({{0, 0}})))
    return c.take();
  if (shape.count() == 0)
    return std::make_unique<Sequence>();
  const Array &x = b.in[0], &y = b.out[0];
  NormArgs args{x.data,
                y.data,
                centred ? anyFloats(b.out[1]) : AnyFloats(),
                anyFloats(b.out[statistics]),
                anyFloats(c.in(1)),
                anyFloats(c.in(2)),
                elementType(x.dtype),
                elementType(y.dtype),
                eps,
                false,
                shape.count(),
                shape.length(),
                rowWalk(x, shape.row.size())};
  const int64_t width = 16 / byteSize(x.dtype);
  args.vectors = packs(shape, width, {&x, &y, &c.in(1), &c.in(2)}) && multiples(args.xRows, width);
  return launchKernel(launchNorm, "launchNorm", args);
}

/// Blocks that share a column's rows.
int partsFor(const NormShape &shape, bool vectors, const Device &device) {
  const int64_t tile = vectors ? 32 : 8, tiles = (shape.length() + tile - 1) / tile;
  int parts = 1;
  while (parts < 8 && tiles * parts < device.multiprocessors() * 2 && shape.count() >= parts * 2 * 128)
    parts *= 2;
  return parts;
}

BoundKernel bindGrad(const host::Binding &b, Device &device, bool centred) {
  host::Checks c(b);
  NormShape shape;
  int64_t affine;
  const size_t columns = centred ? 2 : 1, rstd = centred ? 3 : 2;
  if (!(c.intAttr("affine", affine, 0) && c.arity(4, centred ? 5 : 4, affine ? 1 + columns : 1) &&
        checkFloat(c, b.in[1], "x") && normShape(c, b.in[1], shape) && c.dims(b.in[0], b.in[1].dims) && pairs(c, b.in[0], shape.dtype) &&
        c.contiguous(b.in[0]) && c.contiguous(b.in[1]) && normStatistic(c, b.in[2], shape) &&
        (!centred || (normStatistic(c, b.in[3], shape) && c.dtype(b.in[3], b.in[2].dtype))) &&
        normRow(c, c.in(rstd + 1), shape) && c.dims(b.out[0], b.in[1].dims) &&
        c.dtype(b.out[0], b.in[0].dtype) && (!affine || normRow(c, b.out[1], shape)) &&
        (!affine || !centred || (normRow(c, b.out[2], shape) && c.dtype(b.out[2], b.out[1].dtype))) &&
        c.denseResults() && c.apart({{0, 0}, {0, 1}})))
    return c.take();
  const Array &dy = b.in[0], &x = b.in[1], &scale = c.in(rstd + 1);
  auto kernel = std::make_unique<Sequence>();
  if (shape.length() == 0)
    return kernel;
  NormGradArgs args{dy.data,
                    x.data,
                    b.out[0].data,
                    centred ? anyFloats(b.in[2]) : AnyFloats(),
                    anyFloats(b.in[rstd]),
                    anyFloats(scale),
                    anyFloats(c.out(1)),
                    anyFloats(c.out(2)),
                    elementType(dy.dtype),
                    elementType(x.dtype),
                    false,
                    shape.count(),
                    shape.length(),
                    1};
  args.vectors =
      packs(shape, 16 / std::min(byteSize(dy.dtype), byteSize(x.dtype)), {&dy, &x, &b.out[0], &scale});
  args.parts = partsFor(shape, args.vectors, device);
  if (affine)
    kernel->add(launchKernel(launchNormColumns, "launchNormColumns", args));
  if (shape.count() > 0)
    kernel->add(launchKernel(launchNormGrad, "launchNormGrad", args));
  return kernel;
}

} // namespace

BoundKernel bindLayerNorm(const host::Binding &b, Device &) { return bindForward(b, /*centred=*/true); }
BoundKernel bindRmsNorm(const host::Binding &b, Device &) { return bindForward(b, /*centred=*/false); }
BoundKernel bindLayerNormGrad(const host::Binding &b, Device &device) {
  return bindGrad(b, device, /*centred=*/true);
}
BoundKernel bindRmsNormGrad(const host::Binding &b, Device &device) {
  return bindGrad(b, device, /*centred=*/false);
}

} // namespace shardc::cuda
