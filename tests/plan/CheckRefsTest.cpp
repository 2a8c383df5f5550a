// SPDX-License-Identifier: Apache-2.0
// Operands that lie side by side in the same rows, against the sets of their bytes.
#include "ir/plan/Check.h"
#include "llvm/ADT/DenseSet.h"
#include <gtest/gtest.h>
#include <random>

using namespace llvm;

namespace shardc::check {
namespace {

plan::Ref refOf(uint64_t offset, ArrayRef<int64_t> dims, ArrayRef<int64_t> strides) {
  plan::Ref ref;
  ref.set_offset(offset);
  ref.set_dtype(unsigned(DType::BF16));
  for (int64_t d : dims)
    ref.add_dims(d);
  for (int64_t s : strides)
    ref.add_strides(s);
  return ref;
}

DenseSet<uint64_t> bytesOf(const plan::Ref &ref) {
  DenseSet<uint64_t> bytes;
  for (int64_t i = 0; i < ref.dims(0); ++i)
    for (int64_t j = 0; j < ref.dims(1); ++j)
      for (uint64_t byte : {0, 1})
        bytes.insert(ref.offset() + 2 * uint64_t(i * ref.strides(0) + j * ref.strides(1)) + byte);
  return bytes;
}

plan::Plan oneBuffer() {
  plan::Plan plan;
  plan.set_ranks(1);
  plan.add_buffers()->set_bytes(1 << 12);
  return plan;
}

TEST(CheckRefs, ColumnsOfAMatrixAreSideBySide) {
  const plan::Plan plan = oneBuffer();
  plan::Ref left = refOf(0, {5, 24, 4}, {192, 4, 1}), right = refOf(192, {5, 24, 4}, {192, 4, 1});
  EXPECT_TRUE(areSideBySide(plan, left, right));
  EXPECT_TRUE(areSideBySide(plan, right, left));
  EXPECT_FALSE(areSideBySide(plan, left, left));
  EXPECT_FALSE(areSideBySide(plan, left, refOf(190, {5, 24, 4}, {192, 4, 1})));  // an element too early
  EXPECT_FALSE(areSideBySide(plan, left, refOf(194, {5, 24, 4}, {192, 4, 1})));  // into the next row
  EXPECT_FALSE(areSideBySide(plan, left, refOf(192, {5, 24, 4}, {200, 4, 1})));  // other rows
}

TEST(CheckRefs, SideBySideSharesNoByte) {
  const plan::Plan plan = oneBuffer();
  std::mt19937 random(7);
  auto upTo = [&](int64_t most) { return 1 + int64_t(random() % uint64_t(most)); };
  unsigned apart = 0;
  for (int i = 0; i < 20000; ++i) {
    const int64_t pitch = 4 + upTo(8);
    auto make = [&] { return refOf(2 * uint64_t(upTo(40)), {upTo(4), upTo(4)}, {random() % 4 ? pitch : upTo(12), upTo(2)}); };
    const plan::Ref a = make(), b = make();
    if (!areSideBySide(plan, a, b))
      continue;
    ++apart;
    const DenseSet<uint64_t> bytes = bytesOf(a);
    for (uint64_t byte : bytesOf(b))
      ASSERT_FALSE(bytes.contains(byte)) << a.ShortDebugString() << " and " << b.ShortDebugString();
  }
  EXPECT_GT(apart, 500u);
}

} // namespace
} // namespace shardc::check
