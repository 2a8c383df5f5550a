// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Scene.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace shardc {
namespace {

struct Change {
  std::string what;
  uint64_t saves;
};

/// Changes that this compiler can make, those that change the training least first.
std::vector<Change> changes(const plan::Plan &plan) {
  uint64_t step = 0, state = 0, sharded = 0;
  constexpr plan::BufferKind kCutNext[] = {plan::OPTIMIZER_STATE, plan::GRADIENT, plan::PARAMETER};
  for (auto &[kind, bytes, largest] : memoryByKind(plan)) {
    if (kind == plan::ACTIVATION || kind == plan::WORKSPACE || kind == plan::INPUT)
      step += bytes;
    if (kind == plan::OPTIMIZER_STATE)
      state += bytes;
    if (plan.zero() < 3 && kind == kCutNext[plan.zero()])
      sharded += bytes;
  }
  std::vector<Change> list;
  if (plan.ranks() > 1 && plan.zero() < 3)
    list.push_back({"--zero " + utostr(plan.zero() + 1) + " (now " + utostr(plan.zero()) + ")",
                    sharded / plan.ranks() * (plan.ranks() - 1)});
  if (plan.batch() > 1) {
    uint64_t batch = plan.batch() / 2;
    list.push_back({"--batch " + utostr(batch) + " (now " + utostr(plan.batch()) + ")",
                    uint64_t(double(step) * double(plan.batch() - batch) / double(plan.batch()))});
  } else {
    list.push_back({"half of a sequence dim (--dim)", step / 2});
  }
  const plan::Attr *optimizer = findAttr(plan.options(), "optimizer");
  if (optimizer && optimizer->s() != "sgd" && state)
    list.push_back({"--optimizer sgd (one array of state instead of two)", state / 2});
  erase_if(list, [](const Change &change) { return change.saves < kAlignment; });
  return list;
}

} // namespace

/// A table without its long and light tail: groups below a thousandth of the peak are one row.
static void printGroups(const plan::Plan &plan, const Peak &peak, raw_ostream &os) {
  Table table({{"bytes", Table::Right},
               {"share", Table::Right},
               {"buffers", Table::Right},
               {"largest", Table::Spare},
               {"kind"},
               {"name", Table::Flexible}});
  auto add = [&](const BufferGroup &group, StringRef kind) {
    table.add({bytesText(group.bytes), percentText(double(group.bytes), double(peak.bytes)), utostr(group.count),
               bytesText(group.largest), kind.str(), printable(group.name)});
  };
  BufferGroup rest;
  for (const BufferGroup &group : groupsOf(plan, peak.buffers)) {
    if (group.bytes * 1000 >= peak.bytes) {
      add(group, kindName(group.kind));
      continue;
    }
    rest.bytes += group.bytes;
    rest.largest = std::max(rest.largest, group.largest);
    rest.count += group.count;
  }
  if (rest.count)
    add(rest, "others");
  table.print(os);
}

/// Why it lives: the same, by layer and reason.
static void printReasons(const map::Story &story, raw_ostream &os) {
  Table table({{"bytes", Table::Right},
               {"share", Table::Right},
               {"layers", Table::Right},
               {"in one", Table::Spare},
               {"layer", Table::Flexible},
               {"why", Table::Flexible}});
  uint64_t rest = 0;
  for (const map::PeakGroup &group : story.groups) {
    if (group.total * 1000 < story.bytes) {
      rest += group.total;
      continue;
    }
    std::string why = group.why;
    for (const std::string &name : group.operands)
      why += (&name == &group.operands.front() ? ": " : ", ") + name;
    table.add({bytesText(group.total), percentText(double(group.total), double(story.bytes)), utostr(group.parts),
               bytesText(group.mostOfAPart), group.name, why});
  }
  if (rest)
    table.add({bytesText(rest), percentText(double(rest), double(story.bytes)), "", "", "others", ""});
  table.print(os);
}

static std::string placeOf(const plan::Plan &plan, const map::Story &story) {
  Positions positions(plan);
  if (story.position >= positions.size())
    return "before the first command";
  return positions.describe(story.position) + ", layer " + story.part;
}

std::string peakPlace(const plan::Plan &plan, uint32_t space) { return placeOf(plan, map::Scene(plan, space).story); }

void printPeak(const plan::Plan &plan, raw_ostream &os) {
  for (int s = 0; s < plan.spaces_size(); ++s) {
    Peak peak = findPeak(plan, s);
    if (peak.buffers.empty())
      continue;
    map::Story story = map::Scene(plan, s).story;
    os << "space " << s << " (" << kindName(plan.spaces(s).kind()) << "): " << bytesText(peak.bytes)
       << " live in " << peak.buffers.size() << " buffers, arena "
       << bytesText(plan.spaces(s).bytes()) << "\n"
       << shortened("at " + placeOf(plan, story), screenColumns()) << "\n\n";
    printReasons(story, os);
    os << "\n";
    printGroups(plan, peak, os);
  }
  os << "\nwhat would lower it\n";
  std::vector<Change> list = changes(plan);
  for (const Change &change : list)
    os << "  " << change.what << ": about " << bytesText(change.saves) << " less\n";
  if (list.empty())
    os << "  a smaller model: parameters are nearly all of it\n";
}

} // namespace shardc
