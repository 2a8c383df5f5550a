// SPDX-License-Identifier: Apache-2.0
// Live bytes of a space over time, and where its addresses lie in a picture.
#pragma once

#include "ir/plan/Plan.h"
#include <array>
#include <vector>

namespace shardc::map {

constexpr unsigned kKinds = plan::BufferKind_ARRAYSIZE;

/// Bytes that live from `position` to the next entry's, by BufferKind, rounded up to kAlignment
/// each.
struct Live {
  uint64_t position;
  std::array<uint64_t, kKinds> bytes;
  uint64_t total() const;
};
/// By position, which rises; the first is at 0. Its largest total is the space's lower bound.
std::vector<Live> liveCurve(const plan::Plan &plan, uint32_t space);

/// Which fraction of a picture's height an address lies at: linear between its points, (0, 0) the
/// first, (bytes of the space, 1) the last. What persistent buffers cover looks the same at all
/// times, so that it gets `kAlwaysShare` of the height at most.
class AddressAxis {
public:
  static constexpr double kAlwaysShare = 0.25;
  AddressAxis(const plan::Plan &plan, uint32_t space);
  /// Of `all` bytes, the first `kept` being persistent.
  AddressAxis(uint64_t kept, uint64_t all) { build({{0, kept}}, all); }
  double operator()(uint64_t address) const;
  struct Point {
    uint64_t address;
    double at;
  };
  llvm::ArrayRef<Point> points() const { return points_; }
  bool isLinear() const { return points_.size() == 2; }

private:
  /// `kept`: ranges [begin, end) of what is persistent, in order, apart from each other.
  void build(llvm::ArrayRef<std::pair<uint64_t, uint64_t>> kept, uint64_t all);
  std::vector<Point> points_;
};

} // namespace shardc::map
