// SPDX-License-Identifier: Apache-2.0
// Launch functions of Norm.cu, NormGrad.cu and NormColumns.cu: LayerNorm, and RMSNorm, which has no mean.
// Rows of x lie where `xRows` says; all else is row-major. `vectors`: every pack of a row starts at a
// multiple of 16 bytes of x.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/Walk.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// y = (x - mean) rstd [scale] [+ bias], rstd = 1 / sqrt(mean square + eps). y may be x. Types of x and y:
/// equal, or f32 and a 16-bit one. mean and rstd: f64 for f64, else f32 or 16-bit.
struct NormArgs {
  const void *x;
  void *y;
  AnyFloats mean, rstd, scale, bias; ///< no mean: RMSNorm
  ElementType xType, yType;
  double eps;
  bool vectors;
  long long rows, length;
  Walk xRows;
};
cudaError_t launchNorm(const NormArgs &args, cudaStream_t stream);

/// With h = (x - mean) rstd, dh = dy scale: dx = rstd (dh - mean(dh) - h mean(dh h)), without mean(dh) for
/// RMSNorm. dx has the type of dy and may be dy or x.
struct NormGradArgs {
  const void *dy, *x;
  void *dx;
  AnyFloats mean, rstd, scale, dscale, dbias; ///< dscale, dbias: of launchNormColumns; may be absent
  ElementType dyType, xType;
  bool vectors;
  long long rows, length;
  int parts; ///< of launchNormColumns: blocks that share a column, a power of two up to 8
};
cudaError_t launchNormGrad(const NormGradArgs &args, cudaStream_t stream);
/// dscale = sum over rows of dy h, dbias = sum over rows of dy. Before dx, if that takes the place of dy or
/// x.
cudaError_t launchNormColumns(const NormGradArgs &args, cudaStream_t stream);

} // namespace shardc::cuda
