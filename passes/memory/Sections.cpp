// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace llvm;

namespace shardc {
namespace {

/// A begin or an end, in order of time; ends come before begins of the same time.
struct Change {
  uint64_t time;
  bool begins;
  uint32_t item;
  bool operator<(const Change &other) const {
    return std::tie(time, begins, item) < std::tie(other.time, other.begins, other.item);
  }
};

std::vector<Change> changesOf(ArrayRef<PackItem> items) {
  std::vector<Change> changes;
  changes.reserve(2 * items.size());
  for (uint32_t i = 0; i < items.size(); ++i) {
    changes.push_back({items[i].first, true, i});
    changes.push_back({items[i].last, false, i});
  }
  llvm::sort(changes);
  return changes;
}

} // namespace

uint64_t peakOf(ArrayRef<PackItem> items) {
  uint64_t live = 0, most = 0;
  for (const Change &change : changesOf(items)) {
    live = change.begins ? live + items[change.item].bytes : live - items[change.item].bytes;
    most = std::max(most, live);
  }
  return most;
}

Sections::Sections(ArrayRef<PackItem> items) : begin(items.size()), end(items.size()) {
  uint64_t live = 0;
  bool grew = false; // since the last section
  for (const Change &change : changesOf(items)) {
    const PackItem &item = items[change.item];
    if (change.begins) {
      begin[change.item] = uint32_t(bytes.size());
      live += item.bytes;
    } else {
      if (grew)
        bytes.push_back(live);
      end[change.item] = uint32_t(bytes.size());
      live -= item.bytes;
    }
    grew = change.begins;
  }
}

} // namespace shardc
