// SPDX-License-Identifier: Apache-2.0
// Tiles that the device copies between global and shared memory by itself (sm_90): one thread begins a copy, barriers
// in shared memory say when it has arrived. In shared memory tiles lie as products by warpgroups want them (Wgmma.cuh).
#pragma once

#include "runtime/cuda/Attention.h"
#include <cstdint>
#include <cuda.h>
#include <initializer_list>

namespace shardc::cuda {

/// Describes a [B, S = `rows`, H, `columns`] array of 16-bit elements, of which 64 columns of `tile` rows are copied at a
/// time. What is beyond is zeros when loaded and is not stored. Requires: aligned rows (AttentionWork::wide), S > 0.
inline cudaError_t describeRows(CUtensorMap &map, const AttentionWork &w, const HeadsView &view, int rows, int tile,
                                int columns = 64) {
  static const auto encode = [] {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        found != cudaDriverEntryPointSuccess)
      function = nullptr;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  if (!encode)
    return cudaErrorNotSupported;
  // The stride of a dim of 1 says nothing.
  auto bytes = [](long long stride, int size) { return cuuint64_t(size > 1 ? stride * 2 : 128); };
  const cuuint64_t dims[] = {cuuint64_t(columns), cuuint64_t(rows), cuuint64_t(w.heads), cuuint64_t(w.batch)};
  const cuuint64_t strides[] = {bytes(view.row, rows), bytes(view.head, w.heads), bytes(view.batch, w.batch)};
  const cuuint32_t box[] = {64, cuuint32_t(tile), 1, 1}, steps[] = {1, 1, 1, 1};
  const CUresult code =
      encode(&map, w.type == ElementType::BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, view.data,
             dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return code == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

/// Several, which differ in what is named here.
struct RowsOf {
  CUtensorMap &map;
  HeadsView view;
  int rows, tile, columns = 64;
};
inline cudaError_t describeRows(const AttentionWork &w, std::initializer_list<RowsOf> all) {
  for (const RowsOf &one : all)
    if (cudaError_t code = describeRows(one.map, w, one.view, one.rows, one.tile, one.columns);
        code != cudaSuccess)
      return code;
  return cudaSuccess;
}

__device__ inline uint32_t sharedAddress(const void *at) { return uint32_t(__cvta_generic_to_shared(at)); }

/// A barrier in shared memory that `threads` threads arrive at, with bytes to come. One thread calls; a block barrier
/// follows.
__device__ inline void beginArrivals(uint64_t *barrier, int threads = 1) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(barrier)), "r"(threads) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void expectBytes(uint64_t *barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)), "r"(bytes)
               : "memory");
}
/// Until use number `use` (0 ..) of the barrier is complete; none but the last may be waited for.
__device__ inline void waitForBytes(uint64_t *barrier, int use) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra "
               "again;\ndone:\n}" ::"r"(sharedAddress(barrier)),
               "r"(use & 1)
               : "memory");
}
__device__ inline void loadTile(void *to, const CUtensorMap &map, int row, int h, int b, uint64_t *barrier,
                                int column = 0) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
               "%5}], [%6];" ::"r"(sharedAddress(to)),
               "l"(&map), "r"(column), "r"(row), "r"(h), "r"(b), "r"(sharedAddress(barrier))
               : "memory");
}
/// Behind showToProducts and a barrier. Stores of a thread are one group with commitStores.
__device__ inline void storeTile(const CUtensorMap &map, const void *from, int row, int h, int b, int column = 0) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(sharedAddress(from)), "r"(column), "r"(row), "r"(h), "r"(b)
               : "memory");
}
__device__ inline void commitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Until what the thread's stores read may be written again.
__device__ inline void waitForStores() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

/// Stores four 8 x 8 matrices of 16-bit elements, as loadMatrices loads them: lane l names row l % 8 of matrix l / 8.
__device__ inline void storeMatrices(void *row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(sharedAddress(row)), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

} // namespace shardc::cuda
