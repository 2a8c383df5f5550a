// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/ProductTimer.h"
#include "runtime/cuda/FillRandom.h"
#include "runtime/cuda/Launch.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

namespace shardc::cuda {

constexpr int kMostAlgorithms = 16;
/// All are run so often; those within kClose of the fastest more often.
constexpr int kFirstRuns = 3, kMoreRuns = 9;
constexpr double kClose = 1.1;
/// What an algorithm must gain over the first answer: less is noise.
constexpr double kGain = 0.99;

llvm::Error ProductTimer::open() {
  if (llvm::Error error = stream_.create(/*urgent=*/false))
    return error;
  for (Event *event : {&begin_, &end_})
    if (llvm::Error error = event->create(/*timed=*/true))
      return error;
  int device = 0, cache = 0;
  if (llvm::Error error = check(cudaGetDevice(&device), "cudaGetDevice"))
    return error;
  if (llvm::Error error =
          check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute"))
    return error;
  cacheBytes_ = uint64_t(cache);
  return llvm::Error::success();
}

/// Elements from the first to the last of a batch of matrices.
static int64_t span(const Problem &p, int64_t rows, int64_t row, int64_t columns, int64_t column, int64_t stride) {
  return (rows - 1) * row + (columns - 1) * column + (p.batch - 1) * stride + 1;
}
static int64_t spanOfA(const Problem &p) { return span(p, p.m, p.rowA, p.k, p.columnA, p.strideA); }
static int64_t spanOfB(const Problem &p) { return span(p, p.k, p.rowB, p.n, p.columnB, p.strideB); }
static int64_t spanOfY(const Problem &p) { return span(p, p.m, p.n, p.n, 1, p.strideY); }

/// The first part of `arena` of `wanted` bytes that no operand lies in, or else the largest.
static llvm::MutableArrayRef<char> besideOperands(llvm::MutableArrayRef<char> arena, uint64_t wanted, const Problem &p,
                                                  const Operands &o) {
  struct Taken {
    uint64_t begin, end; ///< in the arena
  };
  std::vector<Taken> taken;
  auto take = [&](const void *data, DType dtype, int64_t count) {
    const uint64_t begin = uint64_t(static_cast<const char *>(data) - arena.data()); // before the arena: beyond all of it
    taken.push_back({begin, begin + uint64_t(count) * byteSize(dtype)});
  };
  take(o.a, p.in, spanOfA(p));
  take(o.b, p.in, spanOfB(p));
  take(o.c, p.out, spanOfY(p));
  take(o.d, p.out, spanOfY(p));
  llvm::sort(taken, [](const Taken &a, const Taken &b) { return a.begin < b.begin; });
  taken.push_back({arena.size(), arena.size()});
  llvm::MutableArrayRef<char> largest;
  uint64_t at = 0;
  for (const Taken &t : taken) {
    const uint64_t end = std::min<uint64_t>(t.begin, arena.size());
    if (end > at && end - at > largest.size())
      largest = arena.slice(at, std::min(end - at, wanted));
    at = std::max(at, t.end);
  }
  return largest;
}

llvm::Error ProductTimer::fill(const Problem &p, const Operands &o) {
  auto random = [&](const void *data, DType dtype, int64_t count) {
    return check(fillRandom(const_cast<void *>(data), elementType(dtype), count, stream_.get()), "fillRandom");
  };
  if (llvm::Error error = random(o.a, p.in, spanOfA(p)))
    return error;
  if (llvm::Error error = random(o.b, p.in, spanOfB(p)))
    return error;
  return p.addsC ? random(o.c, p.out, spanOfY(p)) : llvm::Error::success();
}

llvm::Expected<std::vector<double>> ProductTimer::timesOf(const LtProduct &product, const Operands &operands,
                                                          void *workspace, int count) {
  std::vector<double> times;
  // Written to, so that nothing else stays in the cache. An allocation of its own would count as the program's peak.
  auto sweep = besideOperands(arena_, 2 * cacheBytes_, product.problem(), operands);
  for (int i = 0; i < count; ++i) {
    if (!sweep.empty())
      if (llvm::Error error = check(cudaMemsetAsync(sweep.data(), 0, sweep.size(), stream_.get()), "cudaMemsetAsync"))
        return error;
    if (llvm::Error error = begin_.record(stream_.get()))
      return error;
    if (llvm::Error error = product.run(operands, workspace, stream_.get()))
      return error;
    if (llvm::Error error = end_.record(stream_.get()))
      return error;
    if (llvm::Error error = stream_.synchronize())
      return error;
    float milliseconds = 0;
    if (llvm::Error error = check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "cudaEventElapsedTime"))
      return error;
    times.push_back(milliseconds * 1e3);
  }
  std::sort(times.begin(), times.end());
  return times;
}

llvm::Expected<cublasLtMatmulAlgo_t> ProductTimer::fastest(LtProduct &product, const Operands &operands,
                                                           void *workspace) {
  auto algorithms = product.algorithms(kMostAlgorithms);
  if (!algorithms)
    return algorithms.takeError();
  if (algorithms->size() == 1)
    return algorithms->front();
  if (llvm::Error error = fill(product.problem(), operands))
    return error;
  struct Candidate {
    cublasLtMatmulAlgo_t algorithm;
    double time;
  };
  std::vector<Candidate> candidates;
  double best = HUGE_VAL;
  for (const cublasLtMatmulAlgo_t &algorithm : *algorithms) {
    product.use(algorithm);
    // The first run loads its code. Some refuse what they have promised.
    if (llvm::Error error = product.run(operands, workspace, stream_.get())) {
      llvm::consumeError(std::move(error));
      continue;
    }
    auto times = timesOf(product, operands, workspace, kFirstRuns);
    if (!times)
      return times.takeError();
    candidates.push_back({algorithm, times->front()});
    best = std::min(best, times->front());
  }
  if (candidates.empty())
    return algorithms->front();
  llvm::erase_if(candidates, [&](const Candidate &candidate) { return candidate.time > kClose * best; });
  for (Candidate &candidate : candidates) {
    product.use(candidate.algorithm);
    auto times = timesOf(product, operands, workspace, kMoreRuns);
    if (!times)
      return times.takeError();
    candidate.time = (*times)[kMoreRuns / 2];
  }
  auto faster = [](const Candidate &a, const Candidate &b) { return a.time < b.time; };
  const Candidate &winner = *std::min_element(candidates.begin(), candidates.end(), faster);
  // The library's order decides between those that are about as fast.
  return llvm::find_if(candidates, [&](const Candidate &c) { return kGain * c.time <= winner.time; })->algorithm;
}

} // namespace shardc::cuda
