// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace shardc {

uint64_t alignedBytes(const plan::Buffer &buffer) { return alignTo(buffer.bytes(), kAlignment); }

Peak findPeak(const plan::Plan &plan, uint32_t space, const plan::Region *region) {
  uint64_t persistent = 0;
  std::vector<std::pair<uint64_t, int64_t>> changes; // position, bytes; ends sort before begins
  auto counts = [&](const plan::Buffer &b) {
    return b.space() == space && b.bytes() &&
           (!region || (b.offset() >= region->offset() && b.offset() - region->offset() < region->bytes()));
  };
  for (const plan::Buffer &b : plan.buffers()) {
    if (!counts(b))
      continue;
    if (b.persistent()) {
      persistent += alignedBytes(b);
    } else if (b.first() < b.last()) {
      changes.push_back({b.first(), int64_t(alignedBytes(b))});
      changes.push_back({b.last(), -int64_t(alignedBytes(b))});
    }
  }
  llvm::sort(changes);
  Peak peak;
  peak.bytes = persistent;
  uint64_t live = persistent;
  for (auto [position, bytes] : changes) {
    live += uint64_t(bytes);
    if (live > peak.bytes) {
      peak.bytes = live;
      peak.position = position;
    }
  }
  for (int b = 0; b < plan.buffers_size(); ++b) {
    const plan::Buffer &buffer = plan.buffers(b);
    if (counts(buffer) &&
        (buffer.persistent() || (buffer.first() <= peak.position && peak.position < buffer.last())))
      peak.buffers.push_back(b);
  }
  llvm::stable_sort(peak.buffers, [&](uint32_t a, uint32_t b) {
    return plan.buffers(a).bytes() > plan.buffers(b).bytes();
  });
  return peak;
}

} // namespace shardc
