// SPDX-License-Identifier: Apache-2.0
#include "runtime/Dataset.h"
#include "TestFiles.h"
#include "runtime/Safetensors.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

struct DatasetTest : testing::Test {
  TemporaryFolder folder;
  int64_t ids[6] = {10, 11, 20, 21, 30, 31};
  int32_t moreIds[4] = {40, 41, 50, 51};
  float x[3] = {0.5, 1.5, 2.5};
  double moreX[2] = {3.5, 4.5};

  std::string write(llvm::StringRef name, llvm::ArrayRef<ArrayToWrite> arrays) {
    EXPECT_EQ(messageOf(writeSafetensors(folder.path(name), arrays)), "success");
    return folder.path(name);
  }
  std::string first() {
    return write("a", {{"ids", DType::I64, {3, 2}, ids}, {"x", DType::F32, {3}, x}});
  }
  std::string second() {
    return write("b", {{"ids", DType::I32, {2, 2}, moreIds}, {"x", DType::F64, {2}, moreX}});
  }
  const std::vector<InputSpec> inputs = {{"ids", DType::I64, {2, 2}}, {"x", DType::F32, {2}}};
  std::string open(llvm::ArrayRef<ArrayToWrite> arrays) {
    return messageOf(Dataset::open(write("f", arrays), inputs));
  }
};

TEST_F(DatasetTest, LaysFilesEndToEndAndConverts) {
  Dataset set = llvm::cantFail(Dataset::open({first(), second()}, inputs));
  EXPECT_EQ(set.rows(), 5);
  int64_t rows[6];
  set.copyRows(0, {4, 0, 3}, rows);
  EXPECT_EQ(std::vector<int64_t>(rows, rows + 6), (std::vector<int64_t>{50, 51, 10, 11, 40, 41}));
  float values[3];
  set.copyRows(1, {2, 3, 0}, values);
  EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{2.5, 3.5, 0.5}));
}

TEST_F(DatasetTest, TakesHalfForFloat) {
  std::vector<InputSpec> weight = {{"weight", DType::F32, {1}}};
  Dataset set = llvm::cantFail(Dataset::open(dataFile("deflated.npz"), weight));
  float values[4];
  set.copyRows(0, {0, 1, 2, 3}, values);
  EXPECT_EQ(values[0], 0.5f);
  EXPECT_EQ(values[1], -1.25f);
  EXPECT_NEAR(values[2], 3e-5, 3e-8);
  EXPECT_EQ(values[3], 65504.f);
}

TEST_F(DatasetTest, SaysWhatIsWrong) {
  EXPECT_EQ(open({{"ids", DType::I64, {3, 2}, ids}, {"y", DType::F32, {3}, x}}),
            "f: no array for input \"x\": got ids, y");
  EXPECT_EQ(open({{"ids", DType::F32, {3, 1}, x}, {"x", DType::F32, {3}, x}}),
            "f/ids: wrong dtype: got f32, wanted i64");
  EXPECT_EQ(open({{"ids", DType::I64, {3, 2}, ids}, {"x", DType::I64, {3}, ids}}),
            "f/x: wrong dtype: got i64, wanted f32");
  EXPECT_EQ(open({{"ids", DType::I64, {2, 3}, ids}, {"x", DType::F32, {2}, x}}),
            "f/ids: wrong shape: got 2x3, wanted Nx2");
  EXPECT_EQ(open({{"ids", DType::I64, {6}, ids}, {"x", DType::F32, {3}, x}}),
            "f/ids: wrong shape: got 6, wanted Nx2");
  EXPECT_EQ(open({{"ids", DType::I64, {3, 2}, ids}, {"x", DType::F32, {2}, x}}),
            "f/x: number of rows differs: got 2, wanted 3 as in \"ids\"");
  std::vector<InputSpec> columns = {{"columns", DType::F32, {1, 3}}};
  std::string path = dataFile("stored.npz");
  EXPECT_EQ(messageOf(Dataset::open(path, columns)),
            path + "/columns: wrong dtype: got <f4 in Fortran order, wanted f32");
}

TEST_F(DatasetTest, ChecksRangesAndNamesTheRow) {
  Dataset set = llvm::cantFail(Dataset::open({first(), second()}, inputs));
  EXPECT_EQ(messageOf(set.checkRange("ids", 0, 52, std::nullopt)), "success");
  EXPECT_EQ(messageOf(set.checkRange("ids", 0, 31, std::nullopt)),
            "a/ids: value out of range in row 2: got 31, wanted 0 to 30");
  EXPECT_EQ(messageOf(set.checkRange("ids", 0, 51, std::nullopt)),
            "b/ids: value out of range in row 1: got 51, wanted 0 to 50");
  EXPECT_EQ(messageOf(set.checkRange("ids", 0, 51, 51)), "success");
  EXPECT_EQ(messageOf(set.checkRange("ids", 11, 60, -100)),
            "a/ids: value out of range in row 0: got 10, wanted 11 to 59 or -100");
}

} // namespace
