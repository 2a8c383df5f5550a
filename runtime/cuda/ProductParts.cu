// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Numbers.cuh"
#include "runtime/cuda/ProductParts.h"

namespace shardc::cuda {

// In double: each type's sums and comparisons are rounded as its own would be.
__global__ void __launch_bounds__(kGridThreads) before(ProductParts p) {
  awaitStream();
  for (long long i = firstOfGrid(); i < p.count; i += stepOfGrid())
    store(p.y, i, load<double>(p.bias, i % p.columns) + (p.c.data ? load<double>(p.c, i) : 0.0));
}

__global__ void __launch_bounds__(kGridThreads) relu(ProductParts p) {
  awaitStream();
  for (long long i = firstOfGrid(); i < p.count; i += stepOfGrid())
    if (const double y = load<double>(p.y, i); y <= 0)
      store(p.y, i, 0.0);
}

cudaError_t enqueueBefore(const ProductParts &p, cudaStream_t stream) {
  return enqueue(before, dim3(gridFor(p.count)), kGridThreads, 0, stream, p);
}
cudaError_t enqueueRelu(const ProductParts &p, cudaStream_t stream) {
  return enqueue(relu, dim3(gridFor(p.count)), kGridThreads, 0, stream, p);
}

} // namespace shardc::cuda
