// SPDX-License-Identifier: Apache-2.0
// Cross entropy, embedding and its gradient on the device at sizes of many blocks, in every type, against the host's in
// f64; bad ids.
#include "ir/ops/Reference.h"
#include "tests/cuda/RunCommand.h"

using namespace shardc;
using namespace shardc::test;

namespace {

double toleranceOf(DType dtype) {
  return dtype == DType::BF16 ? 1e-2 : dtype == DType::F16 ? 2e-3 : dtype == DType::F32 ? 2e-5 : 1e-11;
}
DType statisticsOf(DType dtype) { return byteSize(dtype) == 2 ? DType::F32 : dtype; }

Tensor idsOf(std::vector<int64_t> ids) { return Tensor::of<int64_t>(DType::I64, {int64_t(ids.size())}, ids); }

class CudaLoss : public testing::TestWithParam<DType> {};

TEST_P(CudaLoss, ofManyRowsAndClasses) {
  SHARDC_NEEDS_DEVICE();
  const DType dtype = GetParam(), sums = statisticsOf(dtype);
  for (int64_t classes : {1003, 4096, 7}) {
    const int64_t rows = 300;
    std::vector<int64_t> labels(rows);
    for (int64_t r = 0; r < rows; ++r)
      labels[r] = r % 7 == 3 ? -100 : (r * 31) % classes;
    TestCommand forward{"cross_entropy",
                        {{"ignore_index", int64_t(-100)}},
                        {randomTensor(dtype, {rows, classes}, 1, 3), idsOf(labels)}};
    forward.out = {Type(sums, {}), Type(sums, {}), Type(sums, {}), Type(sums, {rows})};
    expectSame(forward, 1e-5);

    Tensor lse = fromDoubles(sums, {rows}, toDoubles(llvm::cantFail(runByHost(forward))[3]));
    TestCommand backward{
        "cross_entropy_grad", forward.attrs, {Tensor::splat(sums, {}, 0.5), forward.in[0], forward.in[1], lse}};
    backward.out = {Type(dtype, {rows, classes})};
    expectSame(backward, toleranceOf(dtype));
    backward.inPlace = {{0, 1}};
    expectSame(backward, toleranceOf(dtype));
  }
}

TEST_P(CudaLoss, embeddingGradOfRepeatedIds) {
  SHARDC_NEEDS_DEVICE();
  const DType dtype = GetParam();
  // One id for half of all, which crosses many pieces; others once or a few times; negative ones.
  const int64_t count = 517, rows = 40, width = 133;
  std::vector<int64_t> ids(count);
  for (int64_t i = 0; i < count; ++i)
    ids[i] = i % 2 ? 5 : i % 9 == 0 ? -1 : (i * i) % rows;
  for (bool accumulate : {false, true})
    for (DType table : {dtype, statisticsOf(dtype)}) {
      TestCommand command{
          "embedding_grad", {{"rows", rows}}, {randomTensor(dtype, {count, width}, 1, 0.1), idsOf(ids)}};
      if (accumulate) {
        command.in.push_back(randomTensor(table, {rows, width}, 2));
        command.inPlace = {{0, 2}};
      }
      command.out = {Type(table, {rows, width})};
      expectSame(command, toleranceOf(table));
    }
}

TEST_P(CudaLoss, embeddingRows) {
  SHARDC_NEEDS_DEVICE();
  for (int64_t width : {64, 12, 7, 1}) {
    TestCommand command{"embedding", {}, {randomTensor(GetParam(), {20, width}, 1), idsOf({3, -1, 19, 0, 3, -20})}};
    command.out = {Type(GetParam(), {6, width})};
    expectSame(command, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaLoss, testing::Values(DType::F64, DType::F32, DType::BF16, DType::F16),
                         [](const auto &info) { return toString(info.param).str(); });

std::string errorOf(const TestCommand &command) {
  auto results = runByDevice(command);
  return results ? "" : llvm::toString(results.takeError());
}

TEST(CudaFaults, ofIdsAndLabels) {
  SHARDC_NEEDS_DEVICE();
  TestCommand embedding{
      "embedding", {}, {randomTensor(DType::F32, {10, 4}, 1), idsOf({3, 10})}, {Type(DType::F32, {2, 4})}};
  EXPECT_EQ(errorOf(embedding), "embedding: token id out of range: got 10, wanted -10 to 9");
  TestCommand grad{"embedding_grad",
                   {{"rows", int64_t(10)}},
                   {randomTensor(DType::F32, {2, 4}, 1), idsOf({3, -11})},
                   {Type(DType::F32, {10, 4})}};
  EXPECT_EQ(errorOf(grad), "embedding_grad: token id out of range: got -11, wanted -10 to 9");
  TestCommand loss{
      "cross_entropy", {{"ignore_index", int64_t(-100)}}, {randomTensor(DType::F32, {2, 4}, 1), idsOf({3, 4})}};
  loss.out = {Type(DType::F32, {}), Type(DType::F32, {}), Type(DType::F32, {}), Type(DType::F32, {2})};
  EXPECT_EQ(errorOf(loss), "cross_entropy: label out of range: got 4, wanted 0 to 3");
}

} // namespace
