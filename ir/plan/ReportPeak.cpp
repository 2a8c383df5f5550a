// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;

namespace shardc {
namespace {

/// "encoder.block.*.h": numbers out of the name, so that layers fall together.
std::string pattern(StringRef name) {
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

struct Group {
  plan::BufferKind kind = plan::ACTIVATION;
  std::string name;
  uint64_t bytes = 0, largest = 0;
  unsigned count = 0;
};

std::vector<Group> groupsAt(const plan::Plan &plan, const Peak &peak) {
  MapVector<std::pair<unsigned, std::string>, Group,
            std::map<std::pair<unsigned, std::string>, unsigned>>
      groups;
  for (uint32_t index : peak.buffers) {
    const plan::Buffer &b = plan.buffers(index);
    std::string name = pattern(fullName(plan, b));
    Group &group = groups[{b.kind(), name}];
    group.kind = b.kind();
    group.name = name;
    group.bytes += alignedBytes(b);
    group.largest = std::max(group.largest, alignedBytes(b));
    ++group.count;
  }
  std::vector<Group> list;
  for (auto &entry : groups)
    list.push_back(entry.second);
  llvm::stable_sort(list, [](auto &a, auto &b) { return a.bytes > b.bytes; });
  return list;
}

/// The command at a position of the numbering that runs through all programs.
std::string commandAt(const plan::Plan &plan, uint64_t position) {
  for (const plan::Program &program : plan.programs()) {
    if (position < uint64_t(program.commands_size())) {
      const plan::Command &c = program.commands(int(position));
      std::string text =
          printable(program.name()) + " command " + utostr(position) + ", " + printable(c.kernel());
      StringRef place = plan.strings(c.place());
      return place.empty() ? text : text + ", " + printable(place);
    }
    position -= program.commands_size();
  }
  return "before the first command";
}

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

void printPeak(const plan::Plan &plan, raw_ostream &os) {
  for (int s = 0; s < plan.spaces_size(); ++s) {
    Peak peak = findPeak(plan, s);
    if (peak.buffers.empty())
      continue;
    os << "space " << s << " (" << kindName(plan.spaces(s).kind()) << "): " << bytesText(peak.bytes)
       << " live in " << peak.buffers.size() << " buffers, arena "
       << bytesText(plan.spaces(s).bytes()) << "\n"
       << shortened("at " + commandAt(plan, peak.position), kScreenColumns) << "\n";
    Table table({{"bytes", Table::Right},
                 {"share", Table::Right},
                 {"buffers", Table::Right},
                 {"largest", Table::Right},
                 {"kind"},
                 {"name", Table::Flexible}});
    // The tail is long and light.
    Group rest;
    for (const Group &group : groupsAt(plan, peak)) {
      if (group.bytes * 1000 < peak.bytes) {
        rest.bytes += group.bytes;
        rest.largest = std::max(rest.largest, group.largest);
        rest.count += group.count;
        continue;
      }
      table.add({bytesText(group.bytes), percentText(double(group.bytes), double(peak.bytes)),
                 utostr(group.count), bytesText(group.largest), kindName(group.kind).str(),
                 printable(group.name)});
    }
    if (rest.count)
      table.add({bytesText(rest.bytes), percentText(double(rest.bytes), double(peak.bytes)),
                 utostr(rest.count), bytesText(rest.largest), "others", ""});
    table.print(os);
  }
  os << "\nwhat would lower it\n";
  std::vector<Change> list = changes(plan);
  for (const Change &change : list)
    os << "  " << change.what << ": about " << bytesText(change.saves) << " less\n";
  if (list.empty())
    os << "  a smaller model: parameters are nearly all of it\n";
}

} // namespace shardc
