// SPDX-License-Identifier: Apache-2.0
// Blocks of a cluster that share a sum: each leaves its part in shared memory, the first joins them in the
// order of their ranks.
#pragma once

#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {

SHARDC_DEVICE unsigned clusterRank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
SHARDC_DEVICE unsigned clusterSize() {
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
/// What all blocks wrote to shared memory before is there for all after it.
SHARDC_DEVICE void clusterBarrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
/// The address of `shared` in the block with that rank.
template <typename T> SHARDC_DEVICE const T *sharedOf(const T *shared, unsigned rank) {
  unsigned long long there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return reinterpret_cast<const T *>(there);
}

} // namespace shardc::cuda
