// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Scalars.h"
#include "tests/ops/Cases.h"
#include <cmath>

namespace shardc::test {
namespace {

/// The f64 array of the step's scalars.
OperandSpec scalars(std::initializer_list<std::pair<unsigned, double>> set) {
  std::vector<double> values(kNumScalars);
  for (auto [slot, value] : set)
    values[slot] = value;
  return wide({kNumScalars}, values);
}

OperandSpec adamScalars(double decayAll, double rank = 0) {
  return scalars({{kLearningRate, 0.01},
                  {kBeta1, 0.9},
                  {kBeta2, 0.99},
                  {kEpsilon, 1e-6},
                  {kWeightDecay, 0.1},
                  {kBiasCorrection1, 1 - 0.9 * 0.9},
                  {kBiasCorrection2, 1 - 0.99 * 0.99},
                  {kDecayAll, decayAll},
                  {kRank, rank}});
}
OperandSpec sgdScalars(double nesterov, double first, double rank = 0) {
  return scalars({{kLearningRate, 0.01},
                  {kWeightDecay, 0.1},
                  {kMomentum, 0.9},
                  {kNesterov, nesterov},
                  {kFirstUpdate, first},
                  {kRank, rank}});
}
Attrs decayEnd(int64_t end) { return {{"decay_end", end}}; }
/// The arrays are a slice of a bucket of 3 x 11 elements.
Attrs slicedDecayEnd(int64_t end) { return {{"decay_end", end}, {"ranks", int64_t(3)}}; }

} // namespace

void updateCases(OpCases &cases) {
  for (const OpDef *def : {&kAdamW, &kAdam})
    for (double decayAll : {0.0, 1.0})
      cases.push_back(
          {def,
           decayAll ? "DecayAll" : "DecaySome",
           {statistic(x({11})), x({11}), statistic(x({11})), statistic(positive({11})), wide({}, {0.25}), adamScalars(decayAll)},
           decayEnd(5)});
  cases.push_back({&kSgd,
                   "Plain",
                   {statistic(x({11})), x({11}), absent(), wide({}, {0.25}), sgdScalars(0, 0)},
                   decayEnd(4)});
  for (double nesterov : {0.0, 1.0})
    for (double first : {0.0, 1.0})
      cases.push_back({&kSgd,
                       std::string(nesterov ? "Nesterov" : "Momentum") + (first ? "First" : ""),
                       {statistic(x({11})), x({11}), statistic(x({11})), wide({}, {0.25}), sgdScalars(nesterov, first)},
                       decayEnd(11)});
  // Decay ends in slice 1: slice 0 decays, slice 2 does not.
  for (int rank : {0, 1, 2}) {
    std::string slice = "Slice" + std::to_string(rank);
    for (const OpDef *def : {&kAdamW, &kAdam})
      cases.push_back({def,
                       slice,
                       {statistic(x({11})), x({11}), statistic(x({11})), statistic(positive({11})), wide({}, {0.25}), adamScalars(0, rank)},
                       slicedDecayEnd(15)});
    cases.push_back(
        {&kSgd, slice, {statistic(x({11})), x({11}), statistic(x({11})), wide({}, {0.25}), sgdScalars(0, 0, rank)}, slicedDecayEnd(15)});
  }
  for (const OpDef *def : {&kAdamW, &kAdam})
    cases.push_back({def,
                     "Skip",
                     {statistic(x({11})), given({11}, std::vector<double>(11, INFINITY)), statistic(x({11})), statistic(positive({11})),
                      wide({}, {0.25}), scalars({{kLearningRate, 0.01}, {kSkipUpdate, 1}})},
                     decayEnd(5)});
  cases.push_back({&kSgd,
                   "Skip",
                   {statistic(x({11})), given({11}, std::vector<double>(11, NAN)), statistic(x({11})), wide({}, {0.25}),
                    scalars({{kLearningRate, 0.01}, {kSkipUpdate, 1}})},
                   decayEnd(5)});
  cases.push_back({&kSumSquares, "Vector", {x({37})}});
  cases.push_back({&kSumSquares, "Empty", {x({0})}});
  cases.push_back({&kSumSquares, "Several", {x({37}), x({0}), x({20001}), x({3, 5}), x({0})}});
  for (auto [name, count, maxNorm] : {std::tuple{"Clips", 4.0, 0.5},
                                      {"FarBelow", 4.0, 100.0},
                                      {"Off", 4.0, 0.0},
                                      {"NoCount", 0.0, 1.0}})
    cases.push_back(
        {&kGradScale,
         name,
         {given({}, {count}), scalars({{kMaxGradNorm, maxNorm}}), wide({}, {30}), wide({}, {70})}});
  const Attrs loss{{"initial", 1024.0}, {"unit", 0.25}};
  auto lossScalars = [](double maxNorm) {
    return scalars({{kMaxGradNorm, maxNorm}, {kBeta1, 0.9}, {kBeta2, 0.99}, {kBiasCorrection1, 0.5}, {kFirstUpdate, 1}, {kRank, 2}});
  };
  auto lossCase = [&](const char *name, double maxNorm, double count, std::vector<double> state, std::vector<double> squares) {
    cases.push_back({&kLossScale,
                     name,
                     {given({}, {count}), lossScalars(maxNorm), wide({4}, std::move(state)), wide({int64_t(squares.size())}, squares),
                      wide({}, {7})},
                     loss});
  };
  lossCase("First", 0, 4, {0, 0, 0, 0}, {30, 1e6});
  lossCase("Clips", 1e-4, 4, {1, 5, 9, 2}, {30, 1e6});
  lossCase("Grows", 1, 4, {3, 1999, 2500, 1}, {1e9});
  lossCase("NoCount", 1, 0, {0, 3, 7, 0}, {0});
  lossCase("Infinite", 1, 4, {0, 1999, 7, 0}, {30, INFINITY, 1});
  lossCase("Nan", 1, 4, {-0.5, 3, 7, 2}, {NAN, 1});
  lossCase("Least", 1, 4, {0x1p-40 - 1, 3, 7, 2}, {INFINITY});
  lossCase("Most", 1, 4, {0x1p40 - 1, 1999, 7, 2}, {1});
  cases.push_back({&kGradScale,
                   "Arrays",
                   {given({}, {4}), scalars({{kMaxGradNorm, 0.5}}), wide({3}, {30, 1, 2}), wide({0}, {}),
                    wide({2, 1}, {50, 17})}});
}

} // namespace shardc::test
