// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/CheckPacking.h"
#include "ir/base/Error.h"
#include <algorithm>
#include <map>
#include <tuple>

using namespace llvm;

namespace shardc {
namespace {

/// Goes through time and keeps what lives, by address: only neighbours can be the first to overlap.
class Check {
public:
  Check(ArrayRef<PackItem> items, uint64_t alignment, ArrayRef<uint64_t> offsets)
      : items_(items), alignment_(alignment), offsets_(offsets) {}

  Error run() {
    std::vector<std::tuple<uint64_t, bool, size_t>> changes; // time, begins, item: ends come first
    for (size_t i = 0; i < items_.size(); ++i) {
      if (offsets_[i] % alignment_)
        return userError(name(i) + ": offset: got " + Twine(offsets_[i]) +
                         ", wanted a multiple of " + Twine(alignment_));
      height = std::max(height, end(i));
      if (items_[i].bytes) {
        changes.push_back({items_[i].first, true, i});
        changes.push_back({items_[i].last, false, i});
      }
    }
    std::sort(changes.begin(), changes.end());
    for (auto [time, begins, i] : changes)
      if (!begins)
        remove(i);
      else if (Error error = add(i, time))
        return error;
    return Error::success();
  }

  uint64_t height = 0, mostLive = 0;

private:
  std::string name(size_t i) const { return "item " + std::to_string(i); }
  uint64_t size(size_t i) const {
    return (items_[i].bytes + alignment_ - 1) / alignment_ * alignment_;
  }
  uint64_t end(size_t i) const { return offsets_[i] + size(i); }

  Error add(size_t i, uint64_t time) {
    auto above = live_.lower_bound(offsets_[i]);
    if (above != live_.end() && above->first < end(i))
      return overlap(i, above->second, time);
    if (above != live_.begin() && end(std::prev(above)->second) > offsets_[i])
      return overlap(i, std::prev(above)->second, time);
    live_[offsets_[i]] = i;
    liveBytes_ += size(i);
    mostLive = std::max(mostLive, liveBytes_);
    return Error::success();
  }

  void remove(size_t i) {
    live_.erase(offsets_[i]);
    liveBytes_ -= size(i);
  }

  Error overlap(size_t a, size_t b, uint64_t time) {
    return userError(name(a) + ": lies over item " + Twine(b) + " at time " + Twine(time) +
                     ": got [" + Twine(offsets_[a]) + ", " + Twine(end(a)) + ") and [" +
                     Twine(offsets_[b]) + ", " + Twine(end(b)) + "), wanted them apart");
  }

  ArrayRef<PackItem> items_;
  uint64_t alignment_;
  ArrayRef<uint64_t> offsets_;
  std::map<uint64_t, size_t> live_; // offset to item
  uint64_t liveBytes_ = 0;
};

} // namespace

Error checkPacking(ArrayRef<PackItem> items, uint64_t alignment, const PackResult &result) {
  if (result.offsets.size() != items.size())
    return userError("packing: offsets: got " + Twine(result.offsets.size()) + ", wanted " +
                     Twine(items.size()));
  Check check(items, alignment, result.offsets);
  if (Error error = check.run())
    return error;
  if (check.height != result.height)
    return userError("packing: height: got " + Twine(result.height) + ", wanted " +
                     Twine(check.height));
  if (check.mostLive != result.lowerBound)
    return userError("packing: lower bound: got " + Twine(result.lowerBound) + ", wanted " +
                     Twine(check.mostLive));
  return Error::success();
}

} // namespace shardc
