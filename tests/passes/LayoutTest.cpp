// SPDX-License-Identifier: Apache-2.0
// Every view's strides must address the elements that the op's own definition (evaluate) picks.
#include "passes/Layout.h"
#include "ir/graph/Builder.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {

/// The elements that the layout addresses in memory 0, 1, 2 ...
std::vector<int64_t> addressed(const Layout &layout, llvm::ArrayRef<int64_t> dims) {
  std::vector<int64_t> out;
  for (int64_t n = 0; n < numElements(dims); ++n) {
    int64_t rest = n, address = layout.offset;
    for (int64_t d = dims.size() - 1; d >= 0; --d) {
      address += rest % dims[d] * layout.strides[d];
      rest /= dims[d];
    }
    out.push_back(address);
  }
  return out;
}

/// Applies `ops` to an iota, once by evaluate and once by layouts; true if all views could be expressed.
struct Chain {
  Graph graph;
  Builder build{graph};
  Value *value;
  Tensor data;
  std::optional<Layout> layout;

  explicit Chain(llvm::ArrayRef<int64_t> dims) {
    data = Tensor(DType::I64, dims);
    for (int64_t i = 0; i < data.numElements(); ++i)
      data.mutableData<int64_t>()[i] = i;
    value = graph.create(kInput, {}, {{"name", std::string("x")}}, {Type(DType::I64, dims)})->result();
    layout = ownLayout(value);
  }
  void apply(Value *view) {
    auto result = view->op()->def().evaluate(*view->op(), {&data});
    ASSERT_TRUE(bool(result));
    data = (*result)[0];
    layout = layout ? viewLayout(*view->op(), *layout) : std::nullopt;
    value = view;
  }
  void expectSame() {
    ASSERT_TRUE(layout);
    EXPECT_EQ(addressed(*layout, value->type().dims),
              std::vector<int64_t>(data.data<int64_t>(), data.data<int64_t>() + data.numElements()));
  }
};

TEST(Layout, ReshapeSplitsAndMerges) {
  Chain c({2, 3, 4});
  c.apply(c.build.reshape(c.value, {6, 2, 2}));
  c.apply(c.build.reshape(c.value, {1, 24, 1}));
  c.expectSame();
}

TEST(Layout, HeadsOfAttentionAreViews) {
  Chain c({2, 5, 12});
  c.apply(c.build.reshape(c.value, {2, 5, 3, 4}));
  c.apply(c.build.transpose(c.value, {0, 2, 1, 3}));
  c.expectSame();
}

TEST(Layout, ReshapeOfATransposeThatMergesNeedsACopy) {
  Chain c({2, 3, 4});
  c.apply(c.build.transpose(c.value, {0, 2, 1}));
  c.apply(c.build.reshape(c.value, {2, 12}));
  EXPECT_FALSE(c.layout);
}

TEST(Layout, ReshapeOfATransposeThatSplitsDoesNot) {
  Chain c({2, 3, 4});
  c.apply(c.build.transpose(c.value, {2, 0, 1}));
  c.apply(c.build.reshape(c.value, {2, 2, 1, 6}));
  c.expectSame();
}

TEST(Layout, SlicesForwardAndBackward) {
  Chain c({4, 6});
  c.apply(c.build.slice(c.value, {1, 4}, {3, 2}, {1, -3}));
  c.expectSame();
}

TEST(Layout, ExpandRepeatsWithStrideZero) {
  Chain c({3, 1});
  c.apply(c.build.expand(c.value, {2, 3, 4}));
  EXPECT_EQ(c.layout->strides, Dims({0, 1, 0}));
  c.expectSame();
}

TEST(Layout, WhatAMatrixKernelTakes) {
  Dims dims{2, 3, 4};
  EXPECT_TRUE(layoutFits({nullptr, 0, {12, 4, 1}}, dims, kMatrix));
  EXPECT_TRUE(layoutFits({nullptr, 0, {12, 1, 3}}, dims, kMatrix));  // transposed
  EXPECT_TRUE(layoutFits({nullptr, 0, {0, 8, 1}}, dims, kMatrix));   // broadcast batch, longer rows
  EXPECT_FALSE(layoutFits({nullptr, 0, {24, 8, 2}}, dims, kMatrix)); // no unit stride
  EXPECT_FALSE(layoutFits({nullptr, 0, {12, 0, 1}}, dims, kMatrix)); // rows on top of each other
  EXPECT_FALSE(layoutFits({nullptr, 0, {12, 1, 3}}, dims, kContiguous));
  EXPECT_TRUE(layoutFits({nullptr, 0, {7, 9, 1}}, {1, 1, 4}, kContiguous)); // strides of dims of size 1 do not matter
}

} // namespace
