// SPDX-License-Identifier: Apache-2.0
// Attention on the device at sizes of more than one tile, in every type, against the host's in f64.
#include "ir/base/Half.h"
#include "ir/ops/Reference.h"
#include "tests/cuda/RunCommand.h"

using namespace shardc;
using namespace shardc::test;

namespace {

struct AttentionCase {
  const char *name;
  int64_t batch, queries, keys, heads, depth;
  Dims bias = {}; ///< empty: none
  Dims mask = {}; ///< empty: none
  double dropout = 0;
  bool packed = false;    ///< q, k and v in one array
  bool floatBias = false; ///< f32 beside 16-bit q, k and v
  bool maskAdds = false;
};

const AttentionCase kCases[] = {
    {"Plain", 2, 80, 80, 2, 64},
    {"OddSizes", 1, 71, 37, 2, 64, {1, 2, 71, 37}},
    {"SharedBias", 3, 40, 72, 2, 64, {1, 2, 40, 72}},
    {"SharedBiasInFloats", 3, 40, 72, 2, 64, {1, 2, 40, 72}, {}, 0, false, true},
    {"FullBias", 2, 24, 66, 2, 64, {2, 2, 24, 66}},
    {"BiasOfAllHeads", 2, 24, 66, 2, 64, {24, 66}},
    {"KeyBias", 2, 20, 70, 2, 64, {2, 1, 1, 70}},
    {"Masked", 2, 70, 70, 2, 64, {1, 2, 70, 70}, {2, 1, 1, 70}},
    {"Dropped", 2, 66, 68, 2, 64, {1, 2, 66, 68}, {}, 0.3},
    {"DroppedOddKeys", 1, 66, 67, 2, 64, {}, {}, 0.3},
    {"Packed", 2, 72, 72, 2, 64, {}, {}, 0, true},
    {"Wide", 1, 70, 50, 2, 128, {1, 2, 70, 50}, {1, 1, 70, 50}, 0.1},
    {"FewQueries", 2, 24, 70, 2, 64, {1, 2, 24, 70}, {2, 1, 1, 70}, 0.2},
    {"ManyQueries", 1, 150, 66, 2, 64, {1, 2, 150, 66}, {1, 1, 150, 66}},
    {"ManyQueriesOfKeyMask", 1, 137, 75, 2, 64, {}, {1, 1, 1, 75}, 0.2},
    {"WideManyQueries", 1, 140, 50, 1, 128, {1, 1, 140, 50}},
    {"WholeTile", 3, 128, 128, 2, 64, {1, 2, 128, 128}, {3, 1, 1, 128}},
    {"WholeTilePackedDropped", 2, 128, 128, 2, 64, {2, 2, 128, 128}, {1, 1, 128, 128}, 0.1, true},
    {"ManyTiles", 2, 200, 264, 2, 64, {1, 2, 200, 264}, {2, 1, 200, 264}, 0.1},
    {"ManyTilesFullBias", 2, 264, 136, 1, 64, {2, 1, 264, 136}, {2, 1, 1, 136}},
    {"AddedMask", 2, 70, 72, 2, 64, {1, 2, 70, 72}, {2, 1, 70, 72}, 0, false, false, true},
    {"AddedMaskManyTiles", 2, 140, 72, 2, 64, {1, 2, 140, 72}, {2, 1, 140, 72}, 0, false, false, true},
    {"AddedMaskOtherDepth", 2, 30, 40, 2, 24, {1, 2, 30, 40}, {2, 1, 30, 40}, 0, false, false, true},
    // So many heads that a block goes through several batches.
    {"ManyHeads", 5, 20, 24, 96, 64, {1, 96, 20, 24}, {5, 1, 1, 24}},
    {"ManyHeadsDropped", 5, 20, 24, 96, 64, {20, 24}, {}, 0.1},
    {"ManyHeadsFullBias", 5, 20, 24, 96, 64, {5, 96, 20, 24}},
    {"ManyHeadsOneMask", 5, 20, 32, 96, 64, {1, 96, 20, 32}, {1, 1, 20, 32}},
    {"ManyHeadsOneKeyMask", 5, 20, 24, 96, 64, {}, {1, 1, 1, 24}, 0.1},
    {"ManyHeadsManyMasks", 5, 20, 32, 96, 64, {}, {5, 1, 20, 32}},
    {"ManyHeadsManyTiles", 3, 136, 144, 67, 64, {1, 67, 136, 144}},
    {"OtherDepth", 2, 30, 40, 2, 24, {1, 2, 30, 40}, {2, 1, 1, 40}},
};

class CudaAttention : public testing::TestWithParam<std::tuple<DType, AttentionCase>> {};

/// Forward and backward of a case as commands.
struct Commands {
  TestCommand forward, backward;

  Commands(DType dtype, const AttentionCase &c) {
    const Dims q = {c.batch, c.queries, c.heads, c.depth}, k = {c.batch, c.keys, c.heads, c.depth},
               lse = {c.batch, c.heads, c.queries};
    const DType statistics = byteSize(dtype) == 2 ? DType::F32 : dtype;
    forward.kernel = "attention";
    forward.attrs = {{"scale", 0.125},
                     {"fill", -3.4028234663852886e38},
                     {"dropout", c.dropout},
                     {"id", int64_t(7)},
                     {"batch_major", int64_t(1)},
                     {"mask_adds", int64_t(c.maskAdds)}};
    forward.scalars[kSeed] = double((uint64_t(5) << 33) + 11), forward.scalars[kStep] = 4,
    forward.scalars[kShardIndex] = 3;
    if (c.packed) {
      const int64_t each = c.heads * c.depth;
      Tensor all = randomTensor(dtype, {c.batch, c.queries, 3, c.heads, c.depth}, 1);
      for (int64_t part = 0; part < 3; ++part)
        forward.in.emplace_back(all, q, Dims{c.queries * 3 * each, 3 * each, c.depth, 1}, part * each);
    } else {
      forward.in = {randomTensor(dtype, q, 1), randomTensor(dtype, k, 2), randomTensor(dtype, k, 3)};
    }
    const DType biasType = c.floatBias ? statistics : dtype;
    forward.in.push_back(c.bias.empty() ? OperandView() : randomTensor(biasType, c.bias, 4));
    forward.in.push_back(c.mask.empty() ? OperandView() : attentionMask(c.mask));
    forward.out = {Type(dtype, q), Type(statistics, lse)};

    backward.kernel = "attention_grad";
    backward.attrs = forward.attrs;
    backward.attrs.set("bias_grad", int64_t(!c.bias.empty()));
    backward.scalars = forward.scalars;
    Tensors results = llvm::cantFail(runByHost(forward));
    Tensor out = fromDoubles(dtype, q, toDoubles(results[0])),
           sums = fromDoubles(statistics, lse, toDoubles(results[1]));
    backward.in = {randomTensor(dtype, q, 5),
                   forward.in[0],
                   forward.in[1],
                   forward.in[2],
                   out,
                   sums,
                   forward.in[3],
                   forward.in[4]};
    backward.out = {Type(dtype, q), Type(dtype, k), Type(dtype, k)};
    if (!c.bias.empty())
      backward.out.emplace_back(biasType, c.bias);
  }
};

TEST_P(CudaAttention, equalsTheHost) {
  SHARDC_NEEDS_DEVICE();
  auto [dtype, c] = GetParam();
  Commands commands(dtype, c);
  expectSame(commands.forward, attentionTolerance(dtype));
  expectSame(commands.backward, 2 * attentionTolerance(dtype));
}

Tensor inTf32(const Tensor &tensor) {
  std::vector<double> values = toDoubles(tensor);
  for (double &value : values)
    value = roundToTf32(float(value));
  return fromDoubles(DType::F32, tensor.dims(), values);
}

/// tf32 = 1 on any operands is what plain attention is on rounded ones.
TEST(CudaAttentionTf32, roundsItsOperands) {
  SHARDC_NEEDS_DEVICE();
  for (const AttentionCase &c : kCases) {
    SCOPED_TRACE(c.name);
    Commands rounded(DType::F32, c), rounds(DType::F32, c);
    for (unsigned i = 0; i < 3; ++i)
      rounded.forward.in[i].storage = inTf32(*rounded.forward.in[i].storage);
    for (unsigned i = 0; i < 4; ++i)
      rounded.backward.in[i].storage = inTf32(*rounded.backward.in[i].storage);
    for (auto [plain, tf32] : {std::pair(&rounded.forward, &rounds.forward), std::pair(&rounded.backward, &rounds.backward)}) {
      auto exact = runByDevice(*tf32);
      tf32->attrs.set("tf32", int64_t(1));
      auto wanted = runByDevice(*plain), got = runByDevice(*tf32);
      ASSERT_TRUE(exact && wanted && got);
      for (unsigned i = 0; i < wanted->size(); ++i)
        EXPECT_EQ(compare((*got)[i], (*wanted)[i], 0), "") << tf32->kernel << ", result " << i;
      EXPECT_NE(compare((*got)[0], (*exact)[0], 0), "") << tf32->kernel;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaAttention,
                         testing::Combine(testing::Values(DType::F64, DType::F32, DType::BF16, DType::F16),
                                          testing::ValuesIn(kCases)),
                         [](const auto &info) {
                           return toString(std::get<0>(info.param)).str() + std::get<1>(info.param).name;
                         });

} // namespace
