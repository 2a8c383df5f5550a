// SPDX-License-Identifier: Apache-2.0
// Softmax, norms, embedding, attention and cross entropy against the references of the op table.
#include "tests/runtime/KernelHarness.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

namespace shardc::host {
namespace {

constexpr DType kF = DType::F64;
const Dims kRowShapes[] = {{1}, {7}, {3, 1}, {5, 33}, {2, 3, 130}, {0, 4}, {4, 4099}};

TEST(Softmax, EqualsReference) {
  for (const Dims &dims : kRowShapes) {
    expectReference({kSoftmax, {noise(kF, dims, 1, -9, 9)}, {}});
    expectReference({kLogSoftmax, {noise(kF, dims, 2, -9, 9)}, {}});
    expectReference({kSoftmaxGrad, {noise(kF, dims, 3), noise(kF, dims, 4, 0, 1)}, {}, 3e-5});
  }
}

TEST(Softmax, LowestScoresEverywhereAreUniform) {
  const float lowest = std::numeric_limits<float>::lowest();
  KernelRun run("softmax");
  run.in(Tensor::splat(DType::F32, {2, 5}, lowest)).out(DType::F32, {2, 5});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  expectNear(run.result(), Tensor::splat(DType::F32, {2, 5}, 0.2), 1e-6, "uniform");
}

TEST(Softmax, InfinitelyLowScores) {
  const float inf = std::numeric_limits<float>::infinity();
  KernelRun run("softmax");
  run.in(Tensor::of<float>(DType::F32, {2, 3}, {-inf, -inf, -inf, 0, -inf, 0}))
      .out(DType::F32, {2, 3});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  expectNear(run.result(), Tensor::of<float>(DType::F32, {2, 3}, {0, 0, 0, 0.5, 0, 0.5}), 0,
             "rows");
}

TEST(LayerNorm, EqualsReference) {
  for (const Dims &dims : {Dims{4, 1}, Dims{3, 7}, Dims{2, 5, 130}, Dims{0, 6}, Dims{70, 65}}) {
    int64_t n = dims.back();
    Tensor x = noise(kF, dims, 1, -2, 3), scale = noise(kF, {n}, 2), bias = noise(kF, {n}, 3);
    Attrs attrs = {{"axis", int64_t(-1)}, {"eps", 1e-3}};
    expectReference({kLayerNorm, {x, scale, bias}, attrs});
    expectReference({kLayerNorm, {x, Tensor(), bias}, attrs});
    expectReference({kLayerNorm, {x}, attrs});
    Dims rows(dims.begin(), dims.end() - 1);
    Tensor mean = noise(kF, rows, 5), rstd = noise(kF, rows, 6, 0.5, 2);
    for (int64_t affine : {0, 1}) {
      Attrs grad = {{"axis", int64_t(-1)}, {"affine", affine}};
      expectReference({kLayerNormGrad, {noise(kF, dims, 7), x, mean, rstd, scale}, grad, 1e-4});
      expectReference({kLayerNormGrad, {noise(kF, dims, 7), x, mean, rstd}, grad, 1e-4});
    }
  }
}

TEST(LayerNorm, OverSeveralDims) {
  expectReference({kLayerNorm,
                   {noise(kF, {3, 4, 5}, 1), noise(kF, {4, 5}, 2), noise(kF, {4, 5}, 3)},
                   {{"axis", int64_t(1)}, {"eps", 1e-5}}});
}

TEST(RmsNorm, EqualsReference) {
  for (const Dims &dims : {Dims{4, 1}, Dims{3, 7}, Dims{2, 5, 130}, Dims{0, 6}, Dims{70, 65}}) {
    Tensor x = noise(kF, dims, 1, -2, 3), scale = noise(kF, {dims.back()}, 2);
    expectReference({kRmsNorm, {x, scale}, {{"axis", int64_t(-1)}, {"eps", 1e-6}}});
    Dims rows(dims.begin(), dims.end() - 1);
    for (int64_t affine : {0, 1})
      expectReference({kRmsNormGrad,
                       {noise(kF, dims, 7), x, noise(kF, rows, 6, 0.5, 2), scale},
                       {{"axis", int64_t(-1)}, {"affine", affine}},
                       1e-4});
  }
}

TEST(Embedding, EqualsReference) {
  for (DType index : {DType::I64, DType::I32})
    for (int64_t width : {1, 5, 70}) {
      Tensor table = noise(kF, {9, width}, 1), ids = noise(index, {3, 40}, 2, 0, 9);
      expectReference({kEmbedding, {table, ids}, {}});
      Tensor dy = noise(kF, {3, 40, width}, 3);
      expectReference({kEmbeddingGrad, {dy, ids}, {{"rows", int64_t(9)}}});
      expectReference({kEmbeddingGrad, {dy, ids, table}, {{"rows", int64_t(9)}}});
    }
}

TEST(Embedding, IdOutOfRangeIsNamed) {
  for (const char *kernel : {"embedding", "embedding_grad"}) {
    KernelRun run(kernel);
    Tensor ids = Tensor::ofInts({1, 7, 0});
    if (llvm::StringRef(kernel) == "embedding")
      run.in(noise(DType::F32, {7, 4}, 1)).in(ids).out(DType::F32, {3, 4});
    else
      run.attr("rows", int64_t(7)).in(noise(DType::F32, {3, 4}, 1)).in(ids).out(DType::F32, {7, 4});
    EXPECT_EQ(messageOf(run.bindAndRun()), "here: token id out of range: got 7, wanted -7 to 6");
  }
}

Attrs attentionAttrs() { return {{"scale", 0.3}, {"dropout", 0.0}, {"batch_major", int64_t(1)}}; }

struct AttentionCase {
  int64_t batch, queries, keys, heads, depth, valueDepth;
  std::vector<Dims> biases;
};
const AttentionCase kAttentionCases[] = {
    {1, 1, 1, 1, 1, 1, {{}, {1, 1, 1, 1}}},
    {2, 5, 7, 3, 4, 6, {{2, 3, 5, 7}, {1, 3, 5, 7}, {2, 1, 1, 7}, {1, 1, 5, 1}, {7}}},
    {1, 300, 257, 2, 8, 8, {{1, 2, 300, 257}}}, // several blocks of rows
    {2, 0, 3, 2, 4, 4, {}},
};

TEST(Attention, EqualsReference) {
  for (const AttentionCase &t : kAttentionCases) {
    Tensor q = noise(kF, {t.batch, t.queries, t.heads, t.depth}, 1, -2, 2);
    Tensor k = noise(kF, {t.batch, t.keys, t.heads, t.depth}, 2, -2, 2);
    Tensor v = noise(kF, {t.batch, t.keys, t.heads, t.valueDepth}, 3);
    expectReference({kAttention, {q, k, v}, attentionAttrs(), 2e-5});
    for (const Dims &bias : t.biases)
      expectReference({kAttention, {q, k, v, noise(kF, bias, 4)}, attentionAttrs(), 2e-5});
  }
}

TEST(Attention, GradientEqualsReference) {
  for (const AttentionCase &t : kAttentionCases) {
    Tensor q = noise(kF, {t.batch, t.queries, t.heads, t.depth}, 1, -2, 2);
    Tensor k = noise(kF, {t.batch, t.keys, t.heads, t.depth}, 2, -2, 2);
    Tensor v = noise(kF, {t.batch, t.keys, t.heads, t.valueDepth}, 3);
    Dims outDims = {t.batch, t.queries, t.heads, t.valueDepth};
    Tensor dout = noise(kF, outDims, 5), out = noise(kF, outDims, 6);
    Tensor lse = noise(kF, {t.batch, t.heads, t.queries}, 7, 4.5, 5);
    Attrs plain = attentionAttrs();
    plain.set("bias_grad", int64_t(0));
    expectReference({kAttentionGrad, {dout, q, k, v, out, lse}, plain, 1e-4});
    for (const Dims &bias : t.biases)
      for (int64_t grad : {0, 1}) {
        Attrs attrs = attentionAttrs();
        attrs.set("bias_grad", grad);
        expectReference(
            {kAttentionGrad, {dout, q, k, v, out, lse, noise(kF, bias, 4)}, attrs, 1e-4});
      }
  }
}

// Some rows are masked in full: their probabilities are uniform, nothing flows back.
TEST(Attention, MasksEqualReference) {
  const double fill = -3.4028234663852886e38;
  for (const Dims &dims : {Dims{2, 3, 5, 7}, Dims{2, 1, 1, 7}, Dims{5, 7}, Dims{2, 1, 5, 1}}) {
    Tensor mask = noise(DType::Bool, dims, 8, 0, 2);
    if (dims.size() == 4 && dims[2] == 5)
      std::fill_n(mask.mutableData<uint8_t>(), dims[3], 0);
    Tensor q = noise(kF, {2, 5, 3, 4}, 1, -2, 2), k = noise(kF, {2, 7, 3, 4}, 2, -2, 2);
    Tensor v = noise(kF, {2, 7, 3, 6}, 3), bias = noise(kF, {1, 3, 5, 7}, 4);
    Attrs attrs = attentionAttrs();
    attrs.set("fill", fill);
    expectReference({kAttention, {q, k, v, Tensor(), mask}, attrs, 2e-5});
    expectReference({kAttention, {q, k, v, bias, mask}, attrs, 2e-5});
    Tensor dout = noise(kF, {2, 5, 3, 6}, 5), out = noise(kF, {2, 5, 3, 6}, 6);
    Tensor lse = noise(kF, {2, 3, 5}, 7, 4.5, 5);
    lse.mutableData<double>()[0] = fill;
    attrs.set("bias_grad", int64_t(1));
    expectReference({kAttentionGrad, {dout, q, k, v, out, lse, bias, mask}, attrs, 1e-4});
  }
}

TEST(CrossEntropy, EqualsReference) {
  for (const Dims &dims : {Dims{1, 1}, Dims{6, 11}, Dims{33, 4100}, Dims{0, 3}}) {
    Tensor logits = noise(kF, dims, 1, -5, 5);
    Tensor labels = noise(DType::I64, {dims[0]}, 2, 0, double(dims[1]));
    if (dims[0] > 2)
      labels.mutableData<int64_t>()[1] = -100;
    Attrs attrs = {{"ignore_index", int64_t(-100)}};
    expectReference({kCrossEntropy, {logits, labels}, attrs});
    Tensor lse = noise(kF, {dims[0]}, 3, 5, 13);
    expectReference({kCrossEntropyGrad, {Tensor::splat(kF, {}, 0.7), logits, labels, lse}, attrs});
  }
}

TEST(CrossEntropy, AllIgnoredIsZero) {
  KernelRun run("cross_entropy");
  run.attr("ignore_index", int64_t(-1))
      .in(noise(DType::F32, {2, 3}, 1))
      .in(Tensor::ofInts({-1, -1}));
  run.out(DType::F32, {}).out(DType::F32, {}).out(DType::F32, {}).out(DType::F32, {2});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  for (unsigned i : {0u, 1u, 2u})
    EXPECT_EQ(run.result(i).asDouble(0), 0);
}

TEST(CrossEntropy, FirstOfEqualLogitsWins) {
  KernelRun run("cross_entropy");
  run.attr("ignore_index", int64_t(-1))
      .in(Tensor::splat(DType::F32, {2, 3}, 1))
      .in(Tensor::ofInts({0, 2}));
  run.out(DType::F32, {}).out(DType::F32, {}).out(DType::F32, {}).out(DType::F32, {2});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  EXPECT_EQ(run.result(2).asDouble(0), 1);
}

TEST(CrossEntropy, LabelOutOfRangeIsNamed) {
  KernelRun run("cross_entropy");
  run.attr("ignore_index", int64_t(-1)).in(noise(DType::F32, {2, 3}, 1)).in(Tensor::ofInts({0, 3}));
  run.out(DType::F32, {}).out(DType::F32, {}).out(DType::F32, {}).out(DType::F32, {2});
  EXPECT_EQ(messageOf(run.bindAndRun()), "here: label out of range: got 3, wanted 0 to 2");
}

} // namespace
} // namespace shardc::host
