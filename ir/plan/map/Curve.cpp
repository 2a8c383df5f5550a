// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/map/Curve.h"
#include "ir/plan/Peak.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>
#include <tuple>

using namespace llvm;

namespace shardc::map {

uint64_t Live::total() const { return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0)); }

std::vector<Live> liveCurve(const plan::Plan &plan, uint32_t space) {
  Live live{0, {}};
  std::vector<std::tuple<uint64_t, plan::BufferKind, uint64_t>>
      changes; // position, kind, bytes (modulo 2^64)
  for (const plan::Buffer &b : plan.buffers()) {
    if (b.space() != space)
      continue;
    if (b.persistent()) {
      live.bytes[b.kind()] += alignedBytes(b);
    } else if (b.first() < b.last()) {
      changes.emplace_back(b.first(), b.kind(), alignedBytes(b));
      changes.emplace_back(b.last(), b.kind(), -alignedBytes(b));
    }
  }
  llvm::sort(changes);
  std::vector<Live> curve = {live};
  for (auto [position, kind, bytes] : changes) {
    live.position = position;
    live.bytes[kind] += bytes;
    if (curve.back().position == position)
      curve.back() = live;
    else
      curve.push_back(live);
  }
  return curve;
}

AddressAxis::AddressAxis(const plan::Plan &plan, uint32_t space) {
  std::vector<std::pair<uint64_t, uint64_t>> always;
  for (const plan::Buffer &b : plan.buffers())
    if (b.space() == space && b.persistent() && b.bytes())
      always.push_back({b.offset(), b.offset() + alignedBytes(b)});
  llvm::sort(always); // they do not overlap
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  for (auto range : always)
    if (!runs.empty() && runs.back().second == range.first)
      runs.back().second = range.second;
    else
      runs.push_back(range);
  build(runs, plan.spaces(int(space)).bytes());
}

void AddressAxis::build(ArrayRef<std::pair<uint64_t, uint64_t>> kept, uint64_t all) {
  uint64_t covered = 0;
  for (auto [begin, end] : kept)
    covered += end - begin;
  points_.push_back({0, 0});
  if (covered >= all || double(covered) <= kAlwaysShare * double(all)) {
    points_.push_back({std::max<uint64_t>(all, 1), 1});
    return;
  }
  double inside = kAlwaysShare / double(covered);
  double outside = (1 - kAlwaysShare) / double(all - covered);
  auto extend = [&](uint64_t to, double scale) {
    uint64_t from = points_.back().address;
    if (to > from)
      points_.push_back({to, points_.back().at + double(to - from) * scale});
  };
  for (auto [begin, end] : kept) {
    extend(begin, outside);
    extend(end, inside);
  }
  extend(all, outside);
  points_.back().at = 1;
}

double AddressAxis::operator()(uint64_t address) const {
  auto next = std::upper_bound(points_.begin() + 1, points_.end() - 1, address,
                               [](uint64_t a, const Point &point) { return a < point.address; });
  const Point &a = next[-1], &b = *next;
  return a.at + (b.at - a.at) * double(address - a.address) / double(b.address - a.address);
}

} // namespace shardc::map
