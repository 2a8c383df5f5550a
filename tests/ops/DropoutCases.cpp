// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {

void dropoutCases(OpCases &cases) {
  auto add = [&](const OpDef &def, const char *what, std::vector<OperandSpec> operands,
                 Attrs attrs) {
    cases.push_back({&def, what, std::move(operands), std::move(attrs), {0}, /*random=*/true});
  };
  for (int64_t batchMajor : {0, 1}) {
    Attrs attrs = {{"p", 0.3}, {"id", int64_t(5)}, {"batch_major", batchMajor}};
    add(kDropout, batchMajor ? "BatchMajor" : "Plain", {x({5, 7})}, attrs);
    Attrs attention = {
        {"scale", 0.5}, {"dropout", 0.3}, {"id", int64_t(5)}, {"batch_major", batchMajor}};
    add(kAttention, batchMajor ? "DropoutBatchMajor" : "Dropout",
        {x({2, 3, 2, 3}), x({2, 4, 2, 3}), x({2, 4, 2, 5}), x({1, 2, 3, 4})}, attention);
    add(kRelativeAttention, batchMajor ? "DropoutBatchMajor" : "Dropout",
        {x({2, 3, 2, 3}), x({2, 4, 2, 3}), x({2, 4, 2, 5}), x({6, 2, 3}), x({6, 2, 3})}, attention);
  }
  add(kAttentionGrad, "Dropout",
      {x({1, 3, 2, 5}), x({1, 3, 2, 3}), x({1, 4, 2, 3}), x({1, 4, 2, 5}), x({1, 3, 2, 5}),
       statistic(above({1, 2, 3}, 8))},
      {{"scale", 0.5}, {"dropout", 0.3}, {"id", int64_t(5)}, {"bias_grad", int64_t(0)}});
}

} // namespace shardc::test
