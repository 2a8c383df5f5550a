// SPDX-License-Identifier: Apache-2.0
// What ops refuse, and in which words.
#include "ir/graph/Builder.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {

class Infer : public testing::Test {
protected:
  Value *value(DType dtype, Dims dims) {
    return graph.create(kInput, {}, {{"name", std::string("v")}}, {Type(dtype, dims)})->result();
  }
  Value *f(Dims dims) { return value(DType::F32, dims); }
  Value *i(Dims dims) { return value(DType::I64, dims); }
  /// The error of an op in place "l0", without that place and the mnemonic; "" if there is none.
  std::string error(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs = {}) {
    Builder build(graph);
    build.place = "l0";
    llvm::Expected<Op *> op = build.create(def, operands, std::move(attrs));
    if (op)
      return "";
    std::string text = llvm::toString(op.takeError());
    std::string prefix = std::string("l0/") + def.mnemonic + ": ";
    EXPECT_EQ(text.substr(0, prefix.size()), prefix);
    return text.substr(std::min(text.size(), prefix.size()));
  }
  Type type(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs = {}) {
    return Builder(graph).make(def, operands, std::move(attrs))->type();
  }
  Graph graph;
};

TEST_F(Infer, pointwise) {
  EXPECT_EQ(error(kAdd, {f({2, 3}), f({4})}),
            "dims do not broadcast: got 2x3 and 4, wanted equal ones or 1");
  EXPECT_EQ(error(kAdd, {f({2}), i({2})}),
            "element types differ: got a f32 and b i64, wanted equal ones");
  EXPECT_EQ(error(kAdd, {value(DType::Bool, {2}), value(DType::Bool, {2})}),
            "operand 0: got bool, wanted a number type");
  EXPECT_EQ(error(kAdd, {f({2})}), "number of operands: got 1, wanted 2");
  EXPECT_EQ(error(kExp, {i({2})}), "operand a: got i64, wanted a float type");
  EXPECT_EQ(error(kAnd, {f({2}), f({2})}), "operand a: got f32, wanted bool");
  EXPECT_EQ(error(kWhere, {f({2}), f({2}), f({2})}), "operand condition: got f32, wanted bool");
  EXPECT_EQ(error(kCast, {f({2})}, {{"to", std::string("f31")}}),
            "attribute 'to': got 'f31', wanted an element type such as f32");
  EXPECT_EQ(error(kCast, {f({2})}), "attribute 'to' is missing: wanted a text");
  EXPECT_EQ(error(kDropout, {f({2})}, {{"p", 1.0}, {"id", int64_t(0)}}),
            "attribute 'p': got 1.000000, wanted one in [0, 1)");
  EXPECT_EQ(type(kLess, {f({2, 1}), f({3})}), Type(DType::Bool, {2, 3}));
  EXPECT_EQ(type(kAdd, {f({0, 1}), f({3})}), Type(DType::F32, {0, 3}));
}

TEST_F(Infer, views) {
  EXPECT_EQ(error(kReshape, {f({2, 3})}, {{"dims", Ints{4}}}),
            "number of elements: got 2x3 -> 4, wanted an equal number");
  EXPECT_EQ(error(kReshape, {f({2, 3})}, {{"dims", Ints{-1, 6}}}),
            "number of elements: got 2x3 -> -1x6, wanted an equal number");
  EXPECT_EQ(error(kReshape, {f({2, 3})}, {{"dims", int64_t(6)}}),
            "attribute 'dims': got 6, wanted a list of integers");
  EXPECT_EQ(error(kTranspose, {f({2, 3})}, {{"perm", Ints{0, 0}}}),
            "attribute 'perm': got 0 missing, out of range or twice, wanted each of [0, 2) once");
  EXPECT_EQ(error(kTranspose, {f({2, 3})}, {{"perm", Ints{0}}}),
            "attribute 'perm': got 1 integers, wanted 2");
  EXPECT_EQ(error(kSlice, {f({4})}, {{"starts", Ints{2}}, {"sizes", Ints{3}}, {"steps", Ints{1}}}),
            "dim 0: got 3 elements from 2 by 1, wanted them inside [0, 4)");
  EXPECT_EQ(error(kSlice, {f({4})}, {{"starts", Ints{1}}, {"sizes", Ints{3}}, {"steps", Ints{-1}}}),
            "dim 0: got 3 elements from 1 by -1, wanted them inside [0, 4)");
  EXPECT_EQ(error(kSlice, {f({4})},
                  {{"starts", Ints{1}}, {"sizes", Ints{3}}, {"steps", Ints{INT64_MAX}}}),
            "dim 0: got 3 elements from 1 by 9223372036854775807, wanted them inside [0, 4)");
  EXPECT_EQ(error(kExpand, {f({2, 3})}, {{"dims", Ints{2, 1}}}),
            "dims do not broadcast: got 2x3 -> 2x1, wanted equal ones, or 1 on the left");
  EXPECT_EQ(
      error(kExpand, {f({1})}, {{"dims", Ints{int64_t(1) << 40, int64_t(1) << 40}}}),
      "result is too large: got 1099511627776x1099511627776, wanted at most 2^44 elements");
}

TEST_F(Infer, movement) {
  EXPECT_EQ(error(kConcat, {}, {{"axis", int64_t(0)}}),
            "number of operands: got 0, wanted 1 or more");
  EXPECT_EQ(error(kConcat, {f({2, 3}), f({3, 3})}, {{"axis", int64_t(1)}}),
            "operand x1: got dims 3x3, wanted 2x3");
  EXPECT_EQ(error(kConcat, {f({2})}, {{"axis", int64_t(1)}}),
            "attribute 'axis': got 1, wanted one in [-1, 1)");
  EXPECT_EQ(error(kPad, {f({2})}, {{"before", Ints{-1}}, {"after", Ints{0}}, {"value", 0.0}}),
            "dim 0: got padding -1 and 0, wanted ones in [0, 2^40]");
  EXPECT_EQ(error(kGather, {f({2}), f({2})}, {{"axis", int64_t(0)}}),
            "operand indices: got f32, wanted i64 or i32");
  EXPECT_EQ(error(kGatherElements, {f({2, 3}), i({3, 3})}, {{"axis", int64_t(1)}}),
            "operand indices: got dims 3x3, wanted at most 2x3 beside the axis");
  EXPECT_EQ(error(kScatterElements, {f({2}), i({2}), f({3})},
                  {{"axis", int64_t(0)}, {"reduction", std::string("add")}}),
            "operand updates: got dims 3, wanted 2");
  EXPECT_EQ(error(kScatterElements, {f({2}), i({2}), f({2})},
                  {{"axis", int64_t(0)}, {"reduction", std::string("avg")}}),
            "attribute 'reduction': got 'avg', wanted none, add, mul, max or min");
  EXPECT_EQ(error(kGatherNd, {f({2, 2}), i({1, 3})}),
            "operand indices: got dims 1x3, wanted a last dim of at most 2");
  EXPECT_EQ(error(kRange, {i({}), i({}), i({})}),
            "operand start: got i64[] that is not constant, wanted one constant number");
  Builder build(graph);
  Value *zero = build.constant(Tensor::splat(DType::I64, {}, 0));
  EXPECT_EQ(
      error(kRange, {zero, zero, zero}),
      "range: got step 0.000000 from 0.000000 to 0.000000, wanted at most 8388608 elements");
  Value *one = build.constant(Tensor::splat(DType::I64, {}, 1)),
        *most = build.constant(Tensor::splat(DType::I64, {}, 8388608)),
        *more = build.constant(Tensor::splat(DType::I64, {}, 8388609));
  EXPECT_EQ(error(kRange, {zero, most, one}), "");
  EXPECT_EQ(error(kRange, {zero, more, one}),
            "range: got step 1.000000 from 0.000000 to 8388609.000000, wanted at most 8388608 elements");
  EXPECT_EQ(error(kEmbedding, {f({5, 3, 1}), i({2})}),
            "operand table: got dims 5x3x1, wanted rank 2");
}

TEST_F(Infer, reductionsAndProducts) {
  EXPECT_EQ(error(kReduceSum, {f({2, 3})}, {{"axes", Ints{2}}}),
            "attribute 'axes': got 2, wanted ones in [-2, 2)");
  EXPECT_EQ(error(kReduceSum, {f({2, 3})}, {{"axes", Ints{1, -1}}}),
            "attribute 'axes': got an axis twice, wanted distinct ones");
  EXPECT_EQ(error(kReduceMax, {f({2, 0})}, {{"axes", Ints{1}}}),
            "operand x: got no elements (2x0), wanted at least one for each result");
  EXPECT_EQ(error(kMatMul, {f({2, 512}), f({500, 3})}),
            "inner sizes differ: got 512 (of 2x512) and 500 (of 500x3), wanted equal ones");
  EXPECT_EQ(
      error(kMatMul, {f({2, 512}), f({512, 500})}, {{"transpose_b", int64_t(1)}}),
      "inner sizes differ: got 512 (of 2x512) and 500 (of 512x500 transposed), wanted equal ones");
  EXPECT_EQ(error(kMatMul, {f({2, 2, 3}), f({3, 3, 2})}),
            "batch dims do not broadcast: got 2x2x3 and 3x3x2, wanted equal ones or 1");
  EXPECT_EQ(error(kMatMul, {f({3}), f({3, 2})}), "operand a: got dims 3, wanted rank 2 or more");
  EXPECT_EQ(error(kMatMul, {f({2, 3}), f({3, 2}), f({2, 3})}),
            "operand c: got dims 2x3, wanted 2x2");
  EXPECT_EQ(error(kMatMul, {f({2, 3}), f({3, 4}), f({2, 4}), f({3})}), "operand bias: got dims 3, wanted 4");
  EXPECT_EQ(error(kMatMul, {f({2, 3}), f({3, 4})}, {{"act", std::string("gelu")}}),
            "attribute 'act': got 'gelu', wanted 'relu' or ''");
  EXPECT_EQ(type(kMatMul, {f({5, 1, 2, 3}), f({4, 3, 7})}), Type(DType::F32, {5, 4, 2, 7}));
}

TEST_F(Infer, composites) {
  EXPECT_EQ(error(kSoftmax, {f({})}), "operand x: got a scalar, wanted rank 1 or more");
  EXPECT_EQ(error(kLayerNorm, {f({2, 3}), f({2})}, {{"axis", int64_t(-1)}, {"eps", 1e-5}}),
            "operand scale: got dims 2, wanted 3");
  EXPECT_EQ(error(kRmsNorm, {f({2, 3}), f({3})}, {{"axis", int64_t(2)}, {"eps", 1e-5}}),
            "attribute 'axis': got 2, wanted one in [-2, 2)");
  EXPECT_EQ(
      error(kAttention, {f({2, 3, 4, 8}), f({2, 5, 4, 8}), f({2, 6, 4, 8})}, {{"scale", 1.0}}),
      "operand v: got dims 2x6x4x8, wanted 2x5x4x8");
  EXPECT_EQ(error(kAttention, {f({2, 3, 4, 8}), f({2, 5, 4, 8}), f({2, 5, 4, 8}), f({3, 3})},
                  {{"scale", 1.0}}),
            "operand bias: got dims 3x3, wanted ones that broadcast to 2x4x3x5");
  EXPECT_EQ(error(kCrossEntropy, {f({4, 5}), i({3})}, {{"ignore_index", int64_t(-100)}}),
            "operand labels: got dims 3, wanted 4");
  EXPECT_EQ(error(kFused, {f({2})},
                  {{"body", std::string("t0 : f32 = x1")}, {"outputs", std::string("t0")}}),
            "column 12: got 'x1', wanted an input, an earlier line or a number");
  EXPECT_EQ(error(kFused, {f({2})}, {{"body", std::string("t0: f32 = rowsum(x0)")}, {"outputs", std::string("t0")}}),
            "body: got a sum over rows, wanted pointwise functions");
}

TEST_F(Infer, groupsOverRows) {
  auto rows = [&](const char *body, const char *outputs, int64_t axis = 1, int64_t parts = 2) {
    return error(kFusedRows, {f({6, 4}), f({4})},
                 {{"body", std::string(body)},
                  {"outputs", std::string(outputs)},
                  {"dims", Ints{6, 4}},
                  {"axis", axis},
                  {"parts", parts}});
  };
  EXPECT_EQ(rows("t0: f32 = x0 * x1;", "t0", 0), "attribute 'axis': got 0, wanted rows: at least 1");
  EXPECT_EQ(rows("t0: f32 = x0 * x1;", "t0", 1, 0), "attribute 'parts': got 0, wanted 1 to 4096");
  EXPECT_EQ(rows("t0: f32 = rowsum(rowsum(x0));", "t0"),
            "body: a sum or maximum: got one of a number, wanted one of elements");
  EXPECT_EQ(rows("t0: f32 = colsum(x0); t1: f32 = x1 + t0;", "t1"),
            "body: a use of a colsum: got one, wanted it as a result only");
  EXPECT_EQ(rows("t0: f32 = 1 + 1;", "t0"), "body: a result: got a mere number, wanted something of an operand");
  EXPECT_EQ(error(kFusedRows, {f({3})},
                  {{"body", std::string("t0: f32 = x0")},
                   {"outputs", std::string("t0")},
                   {"dims", Ints{6, 4}},
                   {"axis", int64_t(1)}}),
            "operand 0: got dims 3, wanted ones that broadcast to 6x4");
  EXPECT_EQ(error(kColumnSums, {f({3})}, {{"dtypes", std::string("f32,f32")}}),
            "attribute 'dtypes': got 2 types, wanted one for each of 1 operands");
}

} // namespace
