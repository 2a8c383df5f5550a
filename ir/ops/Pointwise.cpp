// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/Pointwise.h"

namespace shardc {

Cost pointwiseCost(const Op &op) {
  Cost cost;
  for (Value *value : op.operands())
    cost.bytes += double(value->type().numBytes());
  for (unsigned i = 0; i < op.numResults(); ++i) {
    cost.bytes += double(op.result(i)->type().numBytes());
    cost.flops += 4.0 * double(op.result(i)->type().numElements());
  }
  return cost;
}

} // namespace shardc
