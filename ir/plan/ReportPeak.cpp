// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
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
               {"largest", Table::Right},
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

static void printLayers(const plan::Plan &plan, const Peak &peak, raw_ostream &os) {
  Table table({{"bytes", Table::Right},
               {"share", Table::Right},
               {"persistent", Table::Right},
               {"layers", Table::Right},
               {"layer", Table::Flexible},
               {"largest", Table::Right},
               {"in", Table::Flexible}});
  for (const LayerGroup &group : layersOf(plan, peak.buffers))
    table.add({bytesText(group.bytes), percentText(double(group.bytes), double(peak.bytes)),
               bytesText(group.persistent), utostr(group.layers),
               group.name.empty() ? "(none)" : printable(group.name), bytesText(group.largest),
               group.layers > 1 ? printable(group.largestLayer) : ""});
  table.print(os);
}

std::string peakPlace(const plan::Plan &plan, const Peak &peak) {
  Positions positions(plan);
  if (peak.position >= positions.size())
    return "before the first command";
  StringRef layer = plan.strings(int(positions.command(peak.position).layer()));
  return positions.describe(peak.position) + (layer.empty() ? "" : ", layer " + printable(layer));
}

void printPeak(const plan::Plan &plan, raw_ostream &os) {
  for (int s = 0; s < plan.spaces_size(); ++s) {
    Peak peak = findPeak(plan, s);
    if (peak.buffers.empty())
      continue;
    os << "space " << s << " (" << kindName(plan.spaces(s).kind()) << "): " << bytesText(peak.bytes)
       << " live in " << peak.buffers.size() << " buffers, arena "
       << bytesText(plan.spaces(s).bytes()) << "\n"
       << shortened("at " + peakPlace(plan, peak), kScreenColumns) << "\n";
    printGroups(plan, peak, os);
    os << "\nby layer\n";
    printLayers(plan, peak, os);
  }
  os << "\nwhat would lower it\n";
  std::vector<Change> list = changes(plan);
  for (const Change &change : list)
    os << "  " << change.what << ": about " << bytesText(change.saves) << " less\n";
  if (list.empty())
    os << "  a smaller model: parameters are nearly all of it\n";
}

} // namespace shardc
