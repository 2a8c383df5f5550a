// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "ir/plan/Report.h"
#include <array>

using namespace llvm;

namespace shardc {

std::string nameInLayer(StringRef layer, StringRef name) {
  if (layer.empty() || name.starts_with(layer))
    return name.str();
  StringRef rest = name.split(("." + layer + ".").str()).second; // of "m.decoder.block.0.layer.2.Relu"
  return (layer + (rest.empty() ? ": " + name : "." + rest)).str();
}

std::string fullName(const plan::Plan &plan, const plan::Buffer &buffer) {
  return nameInLayer(plan.strings(buffer.layer()), buffer.name());
}

std::vector<KindBytes> memoryByKind(const plan::Plan &plan) {
  std::array<uint64_t, plan::BufferKind_ARRAYSIZE> atPeak{}, persistent{}, largest{};
  for (int s = 0; s < plan.spaces_size(); ++s)
    for (uint32_t b : findPeak(plan, s).buffers)
      atPeak[plan.buffers(b).kind()] += alignedBytes(plan.buffers(b));
  std::vector<std::pair<uint64_t, uint32_t>> ends; // (position, buffer), as lifetimes end
  std::vector<uint32_t> begins;
  for (int b = 0; b < plan.buffers_size(); ++b) {
    const plan::Buffer &buffer = plan.buffers(b);
    if (buffer.persistent()) {
      persistent[buffer.kind()] += alignedBytes(buffer);
    } else if (buffer.first() < buffer.last()) {
      begins.push_back(b);
      ends.push_back({buffer.last(), b});
    }
  }
  llvm::stable_sort(begins, [&](uint32_t a, uint32_t b) {
    return plan.buffers(a).first() < plan.buffers(b).first();
  });
  llvm::sort(ends);
  std::array<uint64_t, plan::BufferKind_ARRAYSIZE> live = largest = persistent;
  auto end = ends.begin();
  for (uint32_t b : begins) {
    const plan::Buffer &buffer = plan.buffers(b);
    for (; end != ends.end() && end->first <= buffer.first(); ++end)
      live[plan.buffers(end->second).kind()] -= alignedBytes(plan.buffers(end->second));
    live[buffer.kind()] += alignedBytes(buffer);
    largest[buffer.kind()] = std::max(largest[buffer.kind()], live[buffer.kind()]);
  }
  std::vector<KindBytes> result;
  for (auto [kind, bytes] : enumerate(largest))
    if (bytes)
      result.push_back({plan::BufferKind(kind), atPeak[kind], bytes});
  llvm::stable_sort(result, [](auto &a, auto &b) {
    return std::pair(a.atPeak, a.largest) > std::pair(b.atPeak, b.largest);
  });
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

uint64_t rankBytes(const plan::Plan &plan) {
  uint64_t bytes = plan.floor_bytes();
  for (const plan::Space &space : plan.spaces())
    bytes += space.kind() == plan::Space::DEVICE ? space.bytes() : 0;
  return bytes;
}

double gapPercent(const plan::Plan &plan) {
  uint64_t bound = lowerBoundBytes(plan);
  return bound ? 100.0 * double(arenaBytes(plan) - bound) / double(bound) : 0;
}

} // namespace shardc
