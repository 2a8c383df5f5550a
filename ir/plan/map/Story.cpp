// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/map/Story.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Colors.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <numeric>

using namespace llvm;

namespace shardc::map {

StringRef phaseName(const plan::Plan &plan, const Band &band) {
  constexpr const char *kPhases[] = {"forward pass", "backward pass", "update"};
  return plan.programs(int(band.program)).name() == "eval" ? "evaluation" : kPhases[band.phase];
}

const Band &bandAt(ArrayRef<Band> bands, uint64_t position) {
  auto next = llvm::upper_bound(bands, position,
                                [](uint64_t p, const Band &band) { return p < band.first; });
  return next == bands.begin() ? bands.front() : next[-1];
}

namespace {

/// "decoder.block.23": "decoder.block." and 23; without a number at the end: the name and none.
std::pair<StringRef, std::optional<uint64_t>> family(StringRef name) {
  StringRef base = name.rtrim("0123456789");
  uint64_t number;
  if (base.empty() || name.drop_front(base.size()).getAsInteger(10, number))
    return {name, std::nullopt};
  return {base, number};
}

/// What is left of a name after its layer's.
std::string nameInside(StringRef name, const std::string &layer) {
  return printable(name.starts_with(layer + ".") ? name.drop_front(layer.size() + 1) : name);
}

class Teller {
public:
  Teller(const plan::Plan &plan, const Parts &parts, ArrayRef<Life> lives, ArrayRef<Band> bands)
      : plan_(plan), positions_(plan), parts_(parts), lives_(lives), bands_(bands) {}

  Story tell(uint32_t space) {
    Peak peak = findPeak(plan_, space);
    Story story;
    story.bytes = peak.bytes;
    story.position = peak.position;
    if (!positions_.size())
      return story;
    findOperands(peak.position);
    const Band &band = bandAt(bands_, peak.position);
    const plan::Program &program = plan_.programs(int(band.program));
    story.part = parts_.names[band.part];
    story.where = (phaseName(plan_, band) + " of " + story.part + " (" +
                   printable(positions_.command(peak.position).kernel()) + ", command " +
                   Twine(peak.position) + " of " + printable(program.name()) + ")")
                      .str();
    story.groups = groups(peak);
    story.summary = summary(peak, story.groups);
    return story;
  }

private:
  void findOperands(uint64_t position) {
    inUse_.assign(size_t(plan_.buffers_size()), false);
    const plan::Command &c = positions_.command(position);
    for (const plan::Ref &ref : c.inputs())
      if (!ref.absent())
        inUse_[ref.buffer()] = true;
    for (const plan::Ref &ref : c.outputs())
      if (!ref.absent())
        inUse_[ref.buffer()] = true;
    if (c.has_workspace() && !c.workspace().absent())
      inUse_[c.workspace().buffer()] = true;
  }

  std::string why(uint32_t buffer, uint64_t peak) const {
    const plan::Buffer &b = plan_.buffers(int(buffer));
    const Life &life = lives_[buffer];
    if (b.kind() == plan::WORKSPACE)
      return "scratch memory of commands";
    if (b.persistent())
      return kKept.str();
    if (inUse_[buffer])
      return "in use by this command";
    if (b.kind() == plan::COMMUNICATION)
      return "in flight between the ranks";
    if (life.lastReader == Life::kNone || life.lastReader <= peak)
      return "kept to the end of the program";
    StringRef reader = phaseName(plan_, bandAt(bands_, life.lastReader));
    StringRef here = phaseName(plan_, bandAt(bands_, peak));
    StringRef writer =
        life.producer == Life::kNone ? here : phaseName(plan_, bandAt(bands_, life.producer));
    if (reader == writer)
      return ("read again later in the " + reader).str();
    return (reader == "update" ? "waits for the " : "saved for the ") + reader.str();
  }

  std::vector<PeakGroup> groups(const Peak &peak) const {
    struct Gathered {
      PeakGroup group;
      std::map<uint32_t, uint64_t> byPart;
      uint64_t least = ~uint64_t(0), most = 0; // numbers of layers
    };
    std::map<std::pair<std::string, std::string>, Gathered> found; // family, why
    for (uint32_t index : peak.buffers) {
      const plan::Buffer &b = plan_.buffers(int(index));
      uint32_t part = parts_.ofBuffer[index];
      auto [base, number] = family(parts_.names[part]);
      Gathered &g = found[{base.str(), why(index, peak.position)}];
      g.group.bytes[b.kind()] += alignedBytes(b);
      g.group.total += alignedBytes(b);
      g.byPart[part] += alignedBytes(b);
      ++g.group.buffers;
      if (inUse_[index] && !b.persistent() && b.kind() != plan::WORKSPACE)
        g.group.operands.push_back(nameInside(b.name(), parts_.names[part]));
      if (number) {
        g.least = std::min(g.least, *number);
        g.most = std::max(g.most, *number);
      }
    }
    std::vector<PeakGroup> list;
    for (auto &[key, g] : found) {
      g.group.name = key.first;
      g.group.why = key.second;
      if (g.least <= g.most)
        g.group.name += g.least == g.most ? utostr(g.most) : utostr(g.least) + "-" + utostr(g.most);
      g.group.parts = unsigned(g.byPart.size());
      for (auto [part, bytes] : g.byPart)
        g.group.mostOfAPart = std::max(g.group.mostOfAPart, bytes);
      list.push_back(std::move(g.group));
    }
    llvm::stable_sort(list, [](auto &a, auto &b) { return a.total > b.total; });
    return list;
  }

  std::string summary(const Peak &peak, ArrayRef<PeakGroup> groups) const {
    constexpr double kWorthSaying = 0.03;
    std::map<std::string, uint64_t> byReason;
    for (const PeakGroup &group : groups)
      byReason[group.why] += group.total;
    std::vector<std::pair<uint64_t, std::string>> reasons;
    for (auto &[why, bytes] : byReason)
      if (double(bytes) >= kWorthSaying * double(peak.bytes))
        reasons.push_back({bytes, why});
    llvm::sort(reasons, [](auto &a, auto &b) { return a > b; });
    std::string text;
    for (auto &[bytes, why] : reasons)
      text += (text.empty() ? "" : ", ") + percentText(double(bytes), double(peak.bytes)) +
              (text.empty() ? " is " : " ") + why + (why == kKept ? keptKinds(peak) : "");
    std::vector<uint64_t> byPart(parts_.names.size(), 0);
    for (uint32_t b : peak.buffers)
      byPart[parts_.ofBuffer[b]] += alignedBytes(plan_.buffers(int(b)));
    if (byPart.empty())
      return text;
    size_t most = size_t(std::max_element(byPart.begin(), byPart.end()) - byPart.begin());
    return text + "." + savedSoFar(peak) + " Most in one layer: " + parts_.names[most] + ", " + bytesText(byPart[most]) +
           ".";
  }

  /// " (optimizer state, parameters)": what most of it is.
  std::string keptKinds(const Peak &peak) const {
    constexpr double kWorthNaming = 0.1;
    std::array<uint64_t, kKinds> bytes{};
    for (uint32_t b : peak.buffers)
      if (plan_.buffers(int(b)).persistent())
        bytes[plan_.buffers(int(b)).kind()] += alignedBytes(plan_.buffers(int(b)));
    uint64_t all = std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
    std::string names;
    for (const KindColor &kind : kKindColors)
      if (double(bytes[kind.kind]) >= kWorthNaming * double(all))
        names += (names.empty() ? " (" : ", ") + std::string(kind.label);
    return names.empty() ? "" : names + ")";
  }

  /// Why there: " 99.6 % of what the forward pass saves lives at that moment.", where that is most of it; else nothing.
  std::string savedSoFar(const Peak &peak) const {
    const Band &here = bandAt(bands_, peak.position);
    uint64_t saved = 0, alive = 0;
    for (auto [i, b] : enumerate(plan_.buffers())) {
      const Life &life = lives_[i];
      if (b.persistent() || life.producer == Life::kNone || life.lastReader == Life::kNone)
        continue;
      const Band &writer = bandAt(bands_, life.producer), &reader = bandAt(bands_, life.lastReader);
      if (writer.program != here.program || reader.program != here.program || writer.phase == reader.phase)
        continue;
      if (phaseName(plan_, writer) != "forward pass" || phaseName(plan_, reader) != "backward pass")
        continue;
      saved += alignedBytes(b);
      alive += b.first() <= peak.position && peak.position < b.last() ? alignedBytes(b) : 0;
    }
    if (2 * alive <= saved)
      return "";
    return " " + percentText(double(alive), double(saved)) + " of what the forward pass saves lives at that moment.";
  }

  static constexpr StringLiteral kKept = "kept from step to step";
  const plan::Plan &plan_;
  Positions positions_;
  const Parts &parts_;
  ArrayRef<Life> lives_;
  ArrayRef<Band> bands_;
  std::vector<bool> inUse_; ///< by buffer: an operand of the command at the peak
};

} // namespace

Story storyOf(const plan::Plan &plan, uint32_t space, const Parts &parts, ArrayRef<Life> lives,
              ArrayRef<Band> bands) {
  return Teller(plan, parts, lives, bands).tell(space);
}

} // namespace shardc::map
