// SPDX-License-Identifier: Apache-2.0
// relative_attention on the device at sizes of more than one tile, in every type, against the host's in f64.
#include "ir/ops/Reference.h"
#include "tests/cuda/RunCommand.h"

using namespace shardc;
using namespace shardc::test;

namespace {

struct RelativeCase {
  const char *name;
  int64_t batch, queries, keys, heads, depth;
  bool keyTerm = true, queryTerm = true;
  Dims mask = {}; ///< empty: none
  double dropout = 0;
};

const RelativeCase kCases[] = {
    {"Plain", 3, 128, 128, 2, 64},
    {"OddSizes", 2, 71, 37, 2, 64},
    {"KeysOnly", 2, 128, 128, 1, 64, true, false},
    {"QueriesOnly", 2, 100, 128, 1, 64, false, true},
    {"Neither", 1, 70, 70, 1, 64, false, false},
    {"KeyMask", 2, 70, 70, 2, 64, true, true, {2, 1, 1, 70}},
    {"RowMask", 2, 70, 70, 2, 64, true, true, {2, 1, 70, 70}},
    {"Dropped", 2, 66, 68, 2, 64, true, true, {}, 0.3},
    {"DroppedOddKeys", 1, 66, 67, 2, 64, true, true, {}, 0.3},
    {"ManyBatches", 10, 34, 40, 66, 64, true, true, {10, 1, 1, 40}, 0.1},
    {"ManyTiles", 2, 300, 300, 1, 64, true, true, {2, 1, 1, 300}, 0.1},
    {"ManyQueries", 1, 390, 90, 1, 64},
    {"ManyKeys", 1, 90, 390, 1, 64},
    {"OtherDepth", 2, 30, 40, 2, 24, true, true, {2, 1, 1, 40}},
};

class CudaRelativeAttention : public testing::TestWithParam<std::tuple<DType, RelativeCase>> {};

TEST_P(CudaRelativeAttention, equalsTheHost) {
  SHARDC_NEEDS_DEVICE();
  auto [dtype, c] = GetParam();
  const Dims q = {c.batch, c.queries, c.heads, c.depth}, k = {c.batch, c.keys, c.heads, c.depth},
             lse = {c.batch, c.heads, c.queries}, positions = {c.queries + c.keys - 1, c.heads, c.depth};
  const DType statistics = byteSize(dtype) == 2 ? DType::F32 : dtype;
  TestCommand forward;
  forward.kernel = "relative_attention";
  forward.attrs = {{"scale", 0.07},
                   {"fill", -3.4028234663852886e38},
                   {"dropout", c.dropout},
                   {"id", int64_t(7)},
                   {"batch_major", int64_t(1)}};
  forward.scalars[kSeed] = double((uint64_t(5) << 33) + 11), forward.scalars[kStep] = 4,
  forward.scalars[kShardIndex] = 3;
  forward.in = {randomTensor(dtype, q, 1), randomTensor(dtype, k, 2), randomTensor(dtype, k, 3)};
  forward.in.push_back(c.keyTerm ? randomTensor(dtype, positions, 4) : OperandView());
  forward.in.push_back(c.queryTerm ? randomTensor(dtype, positions, 5) : OperandView());
  forward.in.push_back(c.mask.empty() ? OperandView() : attentionMask(c.mask));
  forward.out = {Type(dtype, q), Type(statistics, lse)};
  expectSame(forward, attentionTolerance(dtype));

  Tensors results = llvm::cantFail(runByHost(forward));
  TestCommand backward;
  backward.kernel = "relative_attention_grad";
  backward.attrs = forward.attrs;
  backward.scalars = forward.scalars;
  backward.in = {randomTensor(dtype, q, 6), forward.in[0], forward.in[1], forward.in[2], forward.in[3], forward.in[4],
                 fromDoubles(dtype, q, toDoubles(results[0])),
                 fromDoubles(statistics, lse, toDoubles(results[1])), forward.in[5]};
  backward.out = {Type(dtype, q), Type(dtype, k), Type(dtype, k)};
  for (bool term : {c.keyTerm, c.queryTerm})
    if (term)
      backward.out.emplace_back(dtype, positions);
  expectSame(backward, 2 * attentionTolerance(dtype));
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaRelativeAttention,
                         testing::Combine(testing::Values(DType::F64, DType::F32, DType::BF16, DType::F16),
                                          testing::ValuesIn(kCases)),
                         [](const auto &info) {
                           return toString(std::get<0>(info.param)).str() + std::get<1>(info.param).name;
                         });

} // namespace
