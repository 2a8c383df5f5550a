// SPDX-License-Identifier: Apache-2.0
// Types and one-rank values of collectives, pack and rank_slice, and what these ops refuse.
#include "ir/graph/Builder.h"
#include "ir/ops/Reference.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {

constexpr DType kF = DType::F32;

class Collectives : public testing::Test {
protected:
  Value *f(Dims dims, DType dtype = kF) {
    return graph.create(kInput, {}, {{"name", std::string("v")}}, {Type(dtype, dims)})->result();
  }
  /// "" or why the op may not be made.
  std::string error(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs) {
    llvm::Expected<Op *> op = Builder(graph).create(def, operands, std::move(attrs));
    return op ? "" : llvm::toString(op.takeError());
  }
  Op *make(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs) {
    return Builder(graph).make(def, operands, std::move(attrs))->op();
  }
  static Attrs ranks(int64_t n) { return {{"ranks", n}}; }
  static std::vector<double> values(llvm::Expected<Tensors> results) {
    return results ? toDoubles((*results)[0]) : (ADD_FAILURE() << llvm::toString(results.takeError()), std::vector<double>());
  }
  Graph graph;
};

TEST_F(Collectives, Types) {
  EXPECT_EQ(make(kAllGatherStart, {f({5}), nullptr}, ranks(3))->result()->type(), Type(kF, {15}));
  EXPECT_EQ(make(kAllGatherStart, {f({5}), f({15})}, ranks(3))->result()->type(), Type(kF, {15}));
  EXPECT_EQ(make(kReduceScatterStart, {f({15})}, ranks(3))->result()->type(), Type(kF, {5}));
  EXPECT_EQ(make(kAllReduceStart, {f({4})}, ranks(3))->result()->type(), Type(kF, {4}));
  EXPECT_EQ(make(kRankSlice, {f({15})}, ranks(3))->result()->type(), Type(kF, {5}));
  Op *start = make(kReduceScatterStart, {f({15})}, ranks(3));
  EXPECT_EQ(make(kCollectiveDone, {start->result()}, {})->result()->type(), Type(kF, {5}));
}

TEST_F(Collectives, Refuse) {
  EXPECT_NE(error(kAllGatherStart, {f({5}), nullptr}, {}), "");
  EXPECT_NE(error(kAllGatherStart, {f({5}), nullptr}, ranks(0)), "");
  EXPECT_NE(error(kAllGatherStart, {f({5, 1}), nullptr}, ranks(2)), "");
  EXPECT_NE(error(kAllGatherStart, {f({5}), f({5})}, ranks(2)), "");
  EXPECT_NE(error(kAllGatherStart, {f({5}), f({10}, DType::F64)}, ranks(2)), "");
  EXPECT_NE(error(kReduceScatterStart, {f({5})}, ranks(2)), "");
  EXPECT_NE(error(kReduceScatterStart, {f({2, 2})}, ranks(2)), "");
  EXPECT_NE(error(kAllReduceStart, {f({2, 2})}, ranks(2)), "");
  EXPECT_NE(error(kCollectiveDone, {f({2})}, {}), "");
  EXPECT_NE(error(kRankSlice, {f({5})}, ranks(2)), "");
  EXPECT_NE(error(kRankSlice, {f({2, 2})}, ranks(2)), "");
  EXPECT_NE(error(kRankSlice, {f({4})}, ranks(-2)), "");
}

TEST_F(Collectives, ManyRanksHaveNoValueHere) {
  Tensor x = fromDoubles(kF, {4}, {1, 2, 3, 4});
  for (const OpDef *def : {&kReduceScatterStart, &kAllReduceStart, &kRankSlice}) {
    Op *one = make(*def, {f({4})}, ranks(1)), *two = make(*def, {f({4})}, ranks(2));
    EXPECT_EQ(values(evaluateOp(*one, {&x})), (std::vector<double>{1, 2, 3, 4})) << def->mnemonic;
    llvm::Expected<Tensors> many = evaluateOp(*two, {&x});
    EXPECT_FALSE(bool(many)) << def->mnemonic;
    llvm::consumeError(many.takeError());
  }
}

TEST_F(Collectives, PackPutsArraysInTheirPlaces) {
  Attrs attrs = {{"offsets", Ints{1, 5}}, {"elements", int64_t(8)}};
  Tensor a = fromDoubles(kF, {2, 2}, {1, 2, 3, 4}), b = fromDoubles(kF, {1}, {5});
  Tensor into = fromDoubles(kF, {8}, {9, 9, 9, 9, 9, 9, 9, 8});
  Op *fresh = make(kPack, {nullptr, f({2, 2}), f({1})}, attrs);
  Op *over = make(kPack, {f({8}), f({2, 2}), f({1})}, attrs);
  EXPECT_EQ(values(evaluateOp(*fresh, {nullptr, &a, &b})), (std::vector<double>{0, 1, 2, 3, 4, 5, 0, 0}));
  EXPECT_EQ(values(evaluateOp(*over, {&into, &a, &b})), (std::vector<double>{9, 1, 2, 3, 4, 5, 9, 8}));
}

TEST_F(Collectives, PackRefuses) {
  auto pack = [&](Ints offsets, int64_t elements, llvm::ArrayRef<Value *> operands) {
    return error(kPack, operands, {{"offsets", offsets}, {"elements", elements}});
  };
  EXPECT_EQ(pack({0, 2}, 4, {nullptr, f({2}), f({2})}), "");
  EXPECT_NE(pack({0, 1}, 4, {nullptr, f({2}), f({2})}), "");
  EXPECT_NE(pack({-1, 2}, 4, {nullptr, f({2}), f({2})}), "");
  EXPECT_NE(pack({0, 2}, 3, {nullptr, f({2}), f({2})}), "");
  EXPECT_NE(pack({0}, 4, {nullptr, f({2}), f({2})}), "");
  EXPECT_NE(pack({}, 4, {nullptr}), "");
  EXPECT_NE(pack({0, 2}, 4, {f({5}), f({2}), f({2})}), "");
  EXPECT_NE(pack({0, 2}, 4, {nullptr, f({2}), f({2}, DType::F64)}), "");
}

} // namespace
