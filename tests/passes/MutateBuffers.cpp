// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/Mutations.h"

using namespace llvm;

namespace shardc {

void eachBufferDamage(const plan::Plan &plan, VisitDamage visit) {
  for (int b = 0; b < plan.buffers_size(); ++b) {
    const plan::Buffer &buffer = plan.buffers(b);
    auto damage = [&](StringRef kind, function_ref<void(plan::Buffer &)> apply) {
      visit(
          kind, [&] { return buffer.name(); }, [&](plan::Plan &p) { apply(*p.mutable_buffers(b)); });
    };
    for (int64_t by : {-256, 256, 512})
      if (int64_t(buffer.offset()) + by >= 0)
        damage("shift a buffer", [&](plan::Buffer &x) { x.set_offset(uint64_t(int64_t(x.offset()) + by)); });
    for (int step : {1, 2, 3, 7, 19, 53})
      if (int other = (b + step) % plan.buffers_size(); plan.buffers(other).offset() != buffer.offset())
        damage("alias two buffers", [&](plan::Buffer &x) { x.set_offset(plan.buffers(other).offset()); });
    if (!buffer.persistent()) {
      damage("shorten a lifetime", [](plan::Buffer &x) { x.set_first(x.first() + 1); });
      damage("shorten a lifetime", [](plan::Buffer &x) { x.set_last(x.last() - 1); });
      damage("keep a buffer over all steps", [](plan::Buffer &x) { x.set_persistent(true); });
    } else {
      damage("forget a buffer between steps", [](plan::Buffer &x) { x.set_persistent(false); });
    }
    damage("wrong size of a buffer", [](plan::Buffer &x) { x.set_bytes(x.bytes() / 2); });
    damage("wrong size of a buffer", [](plan::Buffer &x) { x.set_bytes(x.bytes() - 1); });
    damage("wrong size of a buffer", [](plan::Buffer &x) { x.set_bytes(x.bytes() + 4); });
  }
}

} // namespace shardc
