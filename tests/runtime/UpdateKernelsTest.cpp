// SPDX-License-Identifier: Apache-2.0
// Gradient norm and optimizers against the references of the op table, over several updates.
#include "ir/plan/Scalars.h"
#include "tests/runtime/KernelHarness.h"
#include "gtest/gtest.h"
#include <cmath>

namespace shardc::host {
namespace {

constexpr DType kF = DType::F64;

Tensor scalars(std::initializer_list<std::pair<ScalarSlot, double>> values) {
  Tensor t(kF, {kNumScalars});
  for (auto [slot, value] : values)
    t.mutableData<double>()[slot] = value;
  return t;
}

TEST(SumSquares, EqualsReference) {
  for (int64_t n : {0, 1, 7, 32768, 100001})
    expectReference({kSumSquares, {noise(kF, {n}, 1)}, {}, 1e-6});
}

TEST(GradScale, EqualsReference) {
  for (double count : {0.0, 5.0})
    for (double maxNorm : {0.0, 0.1, 1e9}) {
      KernelRun run("grad_scale");
      run.in(Tensor::splat(DType::F32, {}, count)).in(scalars({{kMaxGradNorm, maxNorm}}));
      run.in(Tensor::splat(kF, {}, 9)).in(Tensor::splat(kF, {}, 16)).out(kF, {}).out(kF, {});
      ASSERT_EQ(messageOf(run.bindAndRun()), "");
      double norm = count ? 1 : 0, scale = count ? 0.2 : 0;
      if (count && maxNorm == 0.1)
        scale *= 0.1 / (1 + 1e-6);
      EXPECT_DOUBLE_EQ(run.result(0).asDouble(0), norm);
      EXPECT_DOUBLE_EQ(run.result(1).asDouble(0), scale);
    }
}

TEST(Adam, EqualsReference) {
  for (const OpDef *op : {&kAdamW, &kAdam})
    for (double decayAll : {0.0, 1.0})
      for (int64_t end : {0, 13, 40000}) {
        Tensor hyper = scalars({{kLearningRate, 0.01},
                                {kBeta1, 0.9},
                                {kBeta2, 0.99},
                                {kEpsilon, 1e-6},
                                {kWeightDecay, 0.1},
                                {kBiasCorrection1, 0.19},
                                {kBiasCorrection2, 0.02},
                                {kDecayAll, decayAll}});
        const Dims n = {40000};
        expectReference({*op,
                         {noise(kF, n, 1), noise(kF, n, 2), noise(kF, n, 3), noise(kF, n, 4, 0, 1),
                          Tensor::splat(kF, {}, 0.3), hyper},
                         {{"decay_end", end}},
                         1e-6});
      }
}

TEST(Sgd, EqualsReference) {
  for (double first : {0.0, 1.0})
    for (double nesterov : {0.0, 1.0}) {
      Tensor hyper = scalars({{kLearningRate, 0.01},
                              {kMomentum, 0.9},
                              {kNesterov, nesterov},
                              {kWeightDecay, 0.1},
                              {kFirstUpdate, first}});
      const Dims n = {1000};
      Tensor scale = Tensor::splat(kF, {}, 0.3);
      Attrs attrs = {{"decay_end", int64_t(600)}};
      expectReference(
          {kSgd, {noise(kF, n, 1), noise(kF, n, 2), noise(kF, n, 3), scale, hyper}, attrs, 1e-6});
      expectReference(
          {kSgd, {noise(kF, n, 1), noise(kF, n, 2), Tensor(), scale, hyper}, attrs, 1e-6});
    }
}

// The slices of three ranks, updated one by one, are the bucket updated as a whole; decay ends in the middle of one.
TEST(Optimizers, SlicesMakeTheWhole) {
  constexpr int64_t kRanks = 3, kSlice = 50, kWhole = kRanks * kSlice;
  for (const char *kernel : {"adamw", "adam", "sgd"}) {
    auto update = [&](int64_t ranks, int64_t rank) {
      int64_t n = kWhole / ranks;
      KernelRun run(kernel);
      run.attr("decay_end", int64_t(70)).attr("ranks", ranks);
      auto slice = [&](uint64_t seed, double low) {
        Tensor whole = noise(DType::F32, {kWhole}, seed, low, 1), part(DType::F32, {n});
        std::copy_n(whole.data<float>() + rank * n, n, part.mutableData<float>());
        return part;
      };
      run.in(slice(1, -1)).in(slice(2, -1)).in(slice(3, -1));
      if (kernel != llvm::StringRef("sgd"))
        run.in(slice(4, 0));
      run.in(Tensor::splat(kF, {}, 0.3)).in(scalars({{kLearningRate, 0.01},
                                                     {kBeta1, 0.9},
                                                     {kBeta2, 0.99},
                                                     {kEpsilon, 1e-6},
                                                     {kWeightDecay, 0.1},
                                                     {kMomentum, 0.9},
                                                     {kBiasCorrection1, 0.19},
                                                     {kBiasCorrection2, 0.02},
                                                     {kRank, double(rank)}}));
      run.outOver(0).outOver(2);
      if (kernel != llvm::StringRef("sgd"))
        run.outOver(3);
      EXPECT_EQ(messageOf(run.bindAndRun()), "");
      return run.result(0);
    };
    Tensor whole = update(1, 0);
    for (int64_t r = 0; r < kRanks; ++r) {
      Tensor slice = update(kRanks, r);
      for (int64_t i = 0; i < kSlice; ++i)
        ASSERT_EQ(slice.data<float>()[i], whole.data<float>()[r * kSlice + i]) << kernel << " " << r << " " << i;
    }
  }
}

TEST(Sgd, FirstUpdateDoesNotReadTheBuffer) {
  KernelRun run("sgd");
  run.attr("decay_end", int64_t(0))
      .in(Tensor::splat(DType::F32, {3}, 1))
      .in(Tensor::splat(DType::F32, {3}, 2));
  run.in(Tensor::splat(DType::F32, {3}, NAN)).in(Tensor::splat(kF, {}, 1));
  run.in(scalars({{kLearningRate, 0.5}, {kMomentum, 0.9}, {kFirstUpdate, 1}}))
      .outOver(0)
      .outOver(2);
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  expectNear(run.result(0), Tensor::splat(DType::F32, {3}, 0), 0, "parameters");
  expectNear(run.result(1), Tensor::splat(DType::F32, {3}, 2), 0, "momentum");
}

} // namespace
} // namespace shardc::host
