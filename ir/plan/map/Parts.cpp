// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/map/Parts.h"
#include "ir/plan/Text.h"
#include "ir/plan/Wire.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace shardc::map {

/// The components of "/m/lm_head/MatMul" but the last; none of what is no path.
static SmallVector<StringRef> scopesOf(StringRef place) {
  SmallVector<StringRef> path;
  if (place.consume_front("/"))
    place.split(path, '/', -1, /*KeepEmpty=*/false);
  if (!path.empty())
    path.pop_back();
  return path;
}

/// The exporter's wrapper, "m" of "/m/lm_head/MatMul": what stands in places before the modules of parameters; where none of those is in a
/// place, what all paths begin with. Empty: nothing.
static StringRef wrapperOf(const plan::Plan &plan) {
  StringSet<> modules; // only looked up
  for (const plan::Parameter &p : plan.parameters())
    for (StringRef name = p.name(); name.contains('.');)
      modules.insert(name = name.rsplit('.').first);
  StringRef common;
  bool all = true;
  for (const std::string &text : plan.strings()) {
    if (!StringRef(text).starts_with("/"))
      continue;
    SmallVector<StringRef> scopes = scopesOf(text);
    StringRef head = scopes.empty() ? StringRef(text) : scopes.front();
    if (scopes.size() > 1 && !modules.contains(head) && modules.contains(join(drop_begin(scopes), ".")))
      return head;
    all &= common.empty() || common == head;
    common = head;
  }
  return all ? common : "";
}

/// The layer that a dotted name is under: "encoder.block.0" of "encoder.block.0.layer.1.Add"; "" if that is none.
static StringRef layerAround(StringRef name, const StringSet<> &layers) {
  for (size_t dot = name.find('.'); dot != StringRef::npos; dot = name.find('.', dot + 1))
    if (layers.contains(name.take_front(dot)))
      return name.take_front(dot);
  return "";
}

/// "/m/encoder/embed_tokens/Gather": "encoder.embed_tokens".
static std::string partOfPlace(StringRef place, StringRef wrapper) {
  if (!place.starts_with("/"))
    return printable(place);
  SmallVector<StringRef> path = scopesOf(place);
  if (!path.empty() && path.front() == wrapper)
    path.erase(path.begin());
  if (path.empty())
    path.push_back(place.rsplit('/').second);
  return printable(join(path, "."));
}

Parts partsOf(const plan::Plan &plan, ArrayRef<Life> lives) {
  Parts parts;
  StringMap<uint32_t> known; // only looked up
  auto number = [&](std::string name) {
    auto [entry, isNew] = known.try_emplace(name, uint32_t(parts.names.size()));
    if (isNew)
      parts.names.push_back(std::move(name));
    return entry->second;
  };
  StringRef wrapper = wrapperOf(plan);
  StringSet<> layers; // only looked up
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      layers.insert(plan.strings(int(c.layer())));
  auto inLayer = [&](std::string name) {
    StringRef layer = layerAround(name, layers);
    return layer.empty() ? name : layer.str();
  };
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands()) {
      const std::string &layer = plan.strings(int(c.layer()));
      std::string name =
          layer.empty() ? inLayer(partOfPlace(plan.strings(int(c.place())), wrapper)) : printable(layer);
      parts.ofCommand.push_back(number(name.empty() ? c.kernel() : name));
    }
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const plan::Buffer &b = plan.buffers(i);
    const std::string &layer = plan.strings(int(b.layer()));
    bool helper = b.kind() == plan::WORKSPACE || b.kind() == plan::INPUT ||
                  b.kind() == plan::CONSTANT || b.kind() == plan::SCALAR;
    StringRef around = helper ? "" : layerAround(b.name(), layers);
    if (!layer.empty() || !around.empty())
      parts.ofBuffer.push_back(number(printable(layer.empty() ? around : layer)));
    else if (helper || lives[size_t(i)].producer == Life::kNone)
      parts.ofBuffer.push_back(number(kindName(b.kind()).str()));
    else
      parts.ofBuffer.push_back(parts.ofCommand[lives[size_t(i)].producer]);
  }
  return parts;
}

std::vector<Band> bandsOf(const plan::Plan &plan, const Parts &parts) {
  constexpr uint64_t kMoment = 2;
  std::vector<Band> bands;
  uint64_t position = 0;
  for (int p = 0; p < plan.programs_size(); ++p)
    for (const plan::Command &c : plan.programs(p).commands()) {
      Band band{position, position + 1, uint32_t(p), c.phase(), parts.ofCommand[position]};
      ++position;
      bool goesOn = !bands.empty() && bands.back().program == band.program &&
                    bands.back().phase == band.phase;
      bool computes = c.stream() == 0 && !isCollective(c) && c.kernel() != "collective_done";
      if (goesOn && (!computes || bands.back().part == band.part)) {
        bands.back().last = position;
        continue;
      }
      // A B A with a short B.
      Band *before = bands.size() > 1 ? &bands[bands.size() - 2] : nullptr;
      if (goesOn && before && before->part == band.part && before->program == band.program &&
          before->phase == band.phase && bands.back().last - bands.back().first <= kMoment) {
        before->last = position;
        bands.pop_back();
        continue;
      }
      bands.push_back(band);
    }
  return bands;
}

} // namespace shardc::map
