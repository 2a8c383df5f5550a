// SPDX-License-Identifier: Apache-2.0
// What CUDA C++ has no plain words for: dynamic shared memory, products of small matrices by the tensor cores.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace shardc::cuda {

/// The dynamic shared memory of the block, aligned to 16 bytes.
template <typename T> __device__ inline T *dynamicShared() {
  extern __shared__ uint4 shardcDynamicShared[];
  return reinterpret_cast<T *>(shardcDynamicShared);
}

/// Four 8 x 8 matrices of 16-bit elements: lane l names row l % 8 of matrix l / 8 (16 bytes in shared memory). r[m] of
/// lane l then holds elements 2 (l % 4) and the next of row l / 4 of matrix m. The whole warp calls.
__device__ inline void loadMatrices(uint32_t (&r)[4], const void *row) {
  const uint32_t address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
/// The same, each matrix transposed.
__device__ inline void loadTransposed(uint32_t (&r)[4], const void *row) {
  const uint32_t address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// c[16, 8] += a[16, 16] b[16, 8]. Lane l holds of c: rows l / 4 and 8 more, columns 2 (l % 4) and the next; of a: the
/// same rows and columns, then columns 8 more; of b: rows 2 (l % 4) and the next, then 8 more, column l / 4.
__device__ inline void multiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __nv_bfloat16) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
               "%1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __half) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
               "%1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two numbers rounded to 16 bits, the first in the low half.
__device__ inline uint32_t packPair(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&pair);
}
__device__ inline uint32_t packPair(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&pair);
}

/// 16 bytes to shared memory, zeros if not `real` (then `from` is not read), while the thread goes on.
__device__ inline void copyAsync(void *to, const void *from, bool real) {
  const uint32_t address = uint32_t(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(real ? 16 : 0)
               : "memory");
}
/// Until all copies that this thread began are done. A barrier makes them visible to the others.
__device__ inline void waitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// 2^x to 22 bits; results below 2^-126 are 0.
__device__ inline float exp2Fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

} // namespace shardc::cuda
