// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "ir/plan/Report.h"
#include <array>

using namespace llvm;

namespace shardc {

std::string fullName(const plan::Plan &plan, const plan::Buffer &buffer) {
  const std::string &layer = plan.strings(buffer.layer());
  if (layer.empty() || StringRef(buffer.name()).starts_with(layer))
    return buffer.name();
  return layer + ": " + buffer.name();
}

std::vector<PeakByKind> peakByKind(const plan::Plan &plan) {
  std::array<uint64_t, plan::BufferKind_ARRAYSIZE> bytes{};
  for (int s = 0; s < plan.spaces_size(); ++s)
    for (uint32_t b : findPeak(plan, s).buffers)
      bytes[plan.buffers(b).kind()] += alignedBytes(plan.buffers(b));
  std::vector<PeakByKind> result;
  for (auto [kind, sum] : enumerate(bytes))
    if (sum)
      result.push_back({plan::BufferKind(kind), sum});
  llvm::stable_sort(result, [](auto &a, auto &b) { return a.bytes > b.bytes; });
  return result;
}

uint64_t arenaBytes(const plan::Plan &plan) {
  uint64_t bytes = 0;
  for (const plan::Space &space : plan.spaces())
    bytes += space.bytes();
  return bytes;
}

uint64_t lowerBoundBytes(const plan::Plan &plan) {
  uint64_t bytes = 0;
  for (const plan::Space &space : plan.spaces())
    bytes += space.lower_bound();
  return bytes;
}

double gapPercent(const plan::Plan &plan) {
  uint64_t bound = lowerBoundBytes(plan);
  return bound ? 100.0 * double(arenaBytes(plan) - bound) / double(bound) : 0;
}

} // namespace shardc
