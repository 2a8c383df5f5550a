// SPDX-License-Identifier: Apache-2.0
// An index that is out of range is reported with the command's place, and reads or writes nothing outside.
#include "tests/cuda/Call.h"

using namespace shardc;
using namespace shardc::test;

namespace {

CallOperand x(llvm::ArrayRef<int64_t> dims) { return {randomFloats(dims)}; }
/// Zeros, and `value` in the last place.
CallOperand indices(llvm::ArrayRef<int64_t> dims, int64_t value) {
  Tensor tensor(DType::I64, dims);
  tensor.mutableData<int64_t>()[tensor.numElements() - 1] = value;
  return {tensor};
}

/// `call` of an index: -5 is the first of five, 5 is none.
template <typename F> void expectFault(F call) {
  Call good = call(-5);
  SCOPED_TRACE(good.kernel);
  EXPECT_EQ(complaint(good), "");
  for (int64_t bad : {int64_t(5), int64_t(-6), int64_t(1) << 40})
    EXPECT_EQ(complaint(call(bad)),
              good.kernel + ": index out of range: got " + std::to_string(bad) + ", wanted -5 to 4");
}

TEST(IndexFault, isReportedByEveryKernelThatReadsIndices) {
  SHARDC_NEEDS_DEVICE();
  const int64_t axis = 0, size = 5;
  expectFault([=](int64_t bad) {
    return Call{"gather", {}, {x({5, 3}), indices({40}, bad)}, {{{40, 3}}}}.with("axis", axis);
  });
  expectFault([=](int64_t bad) {
    return Call{"gather_grad", {}, {x({40, 3}), indices({40}, bad)}, {{{5, 3}}}}
        .with("axis", axis)
        .with("size", size);
  });
  expectFault([=](int64_t bad) {
    return Call{"gather_elements", {}, {x({5, 3}), indices({40, 3}, bad)}, {{{40, 3}}}}.with("axis", axis);
  });
  expectFault([=](int64_t bad) {
    return Call{"gather_elements_grad", {}, {x({40, 3}), indices({40, 3}, bad)}, {{{5, 3}}}}
        .with("axis", axis)
        .with("size", size);
  });
  expectFault([=](int64_t bad) {
    return Call{"gather_nd", {}, {x({2, 5, 3}), indices({9, 2}, bad)}, {{{9, 3}}}};
  });
  expectFault([=](int64_t bad) {
    return Call{"scatter_elements", {}, {x({5, 3}), indices({40, 3}, bad), x({40, 3})}, {{{5, 3}}}}
        .with("axis", axis)
        .with("reduction", "add");
  });
  for (int64_t line : {3, 64})
    expectFault([=](int64_t bad) {
      return Call{"scatter_nd", {}, {x({2, 5, line}), indices({9, 2}, bad), x({9, line})}, {{{2, 5, line}}}}
          .with("reduction", "none");
    });
}

TEST(IndexFault, saysThatATableIsEmpty) {
  SHARDC_NEEDS_DEVICE();
  EXPECT_EQ(complaint(Call{"gather", {}, {x({0, 3}), indices({4}, 2)}, {{{4, 3}}}}.with("axis", int64_t(0))),
            "gather: index out of range: got 0, wanted none: the table is empty");
}

} // namespace
