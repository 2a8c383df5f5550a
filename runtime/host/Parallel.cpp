// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Parallel.h"
#include <algorithm>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace shardc::host {

#ifdef _OPENMP

int numThreads() { return std::min(omp_get_max_threads(), kHostSlots); }

void useThreads(int threads) { omp_set_num_threads(std::max(1, threads)); }

void parallelFor(int64_t n, int64_t grain, llvm::function_ref<void(int64_t, int64_t, int)> body) {
  if (n <= 0)
    return;
  int64_t units = (n + grain - 1) / grain;
  if (units <= 1 || omp_in_parallel() || numThreads() == 1)
    return body(0, n, 0);
    // All threads or one: a team that changes its size is made anew each time.
#pragma omp parallel num_threads(numThreads())
  {
    int64_t team = omp_get_num_threads(), self = omp_get_thread_num();
    int64_t begin = units * self / team * grain;
    int64_t end = std::min(units * (self + 1) / team * grain, n);
    if (begin < end)
      body(begin, end, int(self));
  }
}

void parallelTasks(int64_t n, double cost, llvm::function_ref<void(int64_t, int)> body) {
  constexpr double kWorthTheThreads = 1 << 19; // some ten microseconds
  if (n <= 1 || double(n) * cost < kWorthTheThreads || omp_in_parallel() || numThreads() == 1) {
    for (int64_t i = 0; i < n; ++i)
      body(i, 0);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(numThreads())
  for (int64_t i = 0; i < n; ++i)
    body(i, omp_get_thread_num());
}

#else

int numThreads() { return 1; }

void useThreads(int) {}

void parallelFor(int64_t n, int64_t, llvm::function_ref<void(int64_t, int64_t, int)> body) {
  if (n > 0)
    body(0, n, 0);
}

void parallelTasks(int64_t n, double, llvm::function_ref<void(int64_t, int)> body) {
  for (int64_t i = 0; i < n; ++i)
    body(i, 0);
}

#endif

int threadsPerRank(unsigned ranks) { return std::max(1, numThreads() / int(std::max(1u, ranks))); }

} // namespace shardc::host
