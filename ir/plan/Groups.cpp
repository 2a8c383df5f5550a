// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Report.h"
#include "ir/plan/map/Parts.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;

namespace shardc {

std::string namePattern(StringRef name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    bool number = isDigit(name[i]) && (i == 0 || !isAlpha(name[i - 1]));
    if (!number) {
      out += name[i++];
      continue;
    }
    while (i < name.size() && isDigit(name[i]))
      ++i;
    out += '*';
  }
  return out;
}

std::string groupName(const plan::Plan &plan, const plan::Buffer &buffer) {
  return nameInLayer(namePattern(plan.strings(buffer.layer())), namePattern(buffer.name()));
}

template <typename Key, typename Group> using Grouping = MapVector<Key, Group, std::map<Key, unsigned>>;

/// In order of appearance where bytes are equal.
template <typename Key, typename Group> static std::vector<Group> largestFirst(Grouping<Key, Group> &groups) {
  std::vector<Group> list;
  for (auto &entry : groups)
    list.push_back(entry.second);
  llvm::stable_sort(list, [](auto &a, auto &b) { return a.bytes > b.bytes; });
  return list;
}

std::vector<BufferGroup> groupsOf(const plan::Plan &plan, ArrayRef<uint32_t> buffers) {
  Grouping<std::pair<unsigned, std::string>, BufferGroup> groups;
  for (uint32_t index : buffers) {
    const plan::Buffer &b = plan.buffers(index);
    std::string name = groupName(plan, b);
    BufferGroup &group = groups[{b.kind(), name}];
    group.kind = b.kind();
    group.name = name;
    group.shown = group.count ? name : fullName(plan, b);
    group.bytes += alignedBytes(b);
    group.largest = std::max(group.largest, alignedBytes(b));
    ++group.count;
  }
  return largestFirst(groups);
}

std::vector<LayerGroup> singleLayersOf(const plan::Plan &plan, ArrayRef<uint32_t> buffers) {
  map::Parts parts = map::partsOf(plan, livesOf(plan));
  std::vector<LayerGroup> layers(parts.names.size());
  for (auto [layer, name] : zip_equal(layers, parts.names))
    layer.name = name;
  for (uint32_t index : buffers) {
    const plan::Buffer &b = plan.buffers(index);
    LayerGroup &layer = layers[parts.ofBuffer[index]];
    layer.bytes += alignedBytes(b);
    layer.persistent += b.persistent() ? alignedBytes(b) : 0;
  }
  erase_if(layers, [](const LayerGroup &layer) { return layer.bytes == 0; });
  return layers;
}

std::vector<LayerGroup> layersOf(const plan::Plan &plan, ArrayRef<uint32_t> buffers) {
  Grouping<std::string, LayerGroup> groups;
  for (const LayerGroup &layer : singleLayersOf(plan, buffers)) {
    LayerGroup &group = groups[namePattern(layer.name)];
    group.name = namePattern(layer.name);
    group.bytes += layer.bytes;
    group.persistent += layer.persistent;
  }
  return largestFirst(groups);
}

std::vector<uint32_t> buffersAtPeak(const plan::Plan &plan) {
  std::vector<uint32_t> buffers;
  for (int s = 0; s < plan.spaces_size(); ++s)
    append_range(buffers, findPeak(plan, s).buffers);
  return buffers;
}

} // namespace shardc
