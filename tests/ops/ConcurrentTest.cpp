// SPDX-License-Identifier: Apache-2.0
// Ranks are threads of one process: kernels that run at the same time must not disturb each other.
#include "tests/ops/Harness.h"
#include "runtime/host/Parallel.h"
#include "gtest/gtest.h"
#include <thread>

using namespace shardc;
using namespace shardc::test;

namespace {

/// Results of the ops under test, case by case; an error's text where one fails. `first` is where to begin.
std::vector<std::string> resultsOfAllCases(const OpCases &cases, size_t first) {
  std::vector<std::string> results(cases.size());
  for (size_t k = 0; k < cases.size(); ++k) {
    size_t i = (first + k) % cases.size();
    llvm::Expected<CaseGraph> g = buildCase(cases[i], DType::F32);
    if (!g) {
      results[i] = llvm::toString(g.takeError());
      continue;
    }
    llvm::Expected<Values> values = interpret(*g->graph, g->feeds, runKernel);
    if (!values) {
      results[i] = llvm::toString(values.takeError());
      continue;
    }
    for (unsigned r = 0; r < g->op->numResults(); ++r) {
      const Tensor &tensor = (*values)[g->op->result(r)];
      results[i].append(reinterpret_cast<const char *>(tensor.bytes()), tensor.numBytes());
    }
  }
  return results;
}

TEST(Concurrent, KernelsOfRanksDoNotDisturbEachOther) {
  const OpCases cases = allCases();
  const std::vector<std::string> alone = resultsOfAllCases(cases, 0);
  constexpr int kRanks = 4;
  std::vector<std::string> together[kRanks];
  std::vector<std::thread> ranks;
  for (int r = 0; r < kRanks; ++r)
    ranks.emplace_back([&, r] {
      host::useThreads(host::threadsPerRank(kRanks));
      // Two begin at the same op, the others elsewhere.
      together[r] = resultsOfAllCases(cases, cases.size() * (r / 2) / 2);
    });
  for (std::thread &rank : ranks)
    rank.join();
  for (int r = 0; r < kRanks; ++r)
    for (size_t i = 0; i < cases.size(); ++i)
      EXPECT_TRUE(together[r][i] == alone[i]) << cases[i].def->mnemonic << "_" << cases[i].what << ", rank " << r;
}

} // namespace
