// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <numeric>

using namespace llvm;

namespace shardc {
namespace {

struct Sides {
  uint64_t before = 0, after = 0;
  int64_t change() const { return int64_t(after) - int64_t(before); }
  uint64_t distance() const { return uint64_t(std::abs(change())); }
};

std::string changeText(const Sides &bytes) {
  if (bytes.before == bytes.after)
    return "same";
  return (bytes.change() < 0 ? "-" : "+") + bytesText(bytes.distance());
}

/// The largest change first; what is equal comes last, by name.
template <typename Key> std::vector<std::pair<Key, Sides>> byChange(const std::map<Key, Sides> &sides) {
  std::vector<std::pair<Key, Sides>> list(sides.begin(), sides.end());
  llvm::stable_sort(list, [](auto &a, auto &b) { return a.second.distance() > b.second.distance(); });
  return list;
}

Table bytesTable(StringRef what) {
  return Table({{what.str(), Table::Flexible},
                {"before", Table::Right},
                {"after", Table::Right},
                {"change", Table::Right}});
}

void printOptions(const plan::Plan &before, const plan::Plan &after, raw_ostream &os) {
  os << "options\n";
  std::map<std::string, std::pair<std::string, std::string>> options;
  auto collect = [&](const plan::Plan &plan, auto side) {
    auto set = [&](StringRef name, std::string value) { (options[name.str()].*side) = std::move(value); };
    for (const plan::Attr &option : plan.options())
      set(printable(option.name()), attrText(option));
    set("model", printable(plan.model().path()));
    set("model hash", printable(plan.model().hash()));
    set("ranks", utostr(plan.ranks()));
    set("zero", utostr(plan.zero()));
    set("batch", utostr(plan.batch()));
    set("accumulate", utostr(plan.accumulate()));
    set("compiler", printable(plan.compiler()));
  };
  using Values = std::pair<std::string, std::string>;
  collect(before, &Values::first);
  collect(after, &Values::second);
  Table table({{"option"}, {"before", Table::Flexible}, {"after", Table::Flexible}});
  for (auto &[name, values] : options)
    if (values.first != values.second)
      table.add({name, values.first.empty() ? "-" : values.first, values.second.empty() ? "-" : values.second});
  if (table.empty())
    os << "  the same\n";
  else
    table.print(os);
}

void printTotals(const plan::Plan &before, const plan::Plan &after, raw_ostream &os) {
  os << "\nof a rank\n";
  Table table = bytesTable("");
  auto add = [&](const char *what, uint64_t a, uint64_t b) {
    table.add({what, bytesText(a), bytesText(b), changeText({a, b})});
  };
  add("arena", arenaBytes(before), arenaBytes(after));
  add("lower bound", lowerBoundBytes(before), lowerBoundBytes(after));
  add("outside the plan", before.floor_bytes(), after.floor_bytes());
  WireBytes wireBefore = wireBytesPerStep(before), wireAfter = wireBytesPerStep(after);
  add("sent in a step", wireBefore.buckets + wireBefore.scalars, wireAfter.buckets + wireAfter.scalars);
  auto addTime = [&](const char *what, double a, double b) {
    std::string change = a == b ? "same" : (b < a ? "-" : "+") + durationText(1e3 * std::abs(b - a));
    table.add({what, durationText(1e3 * a), durationText(1e3 * b), change});
  };
  addTime("predicted step", before.predicted_ms(), after.predicted_ms());
  addTime("exposed communication", before.exposed_ms(), after.exposed_ms());
  table.print(os);
  for (auto [side, plan] : {std::pair("before", &before), std::pair("after", &after)})
    for (int s = 0; s < plan->spaces_size(); ++s)
      if (plan->spaces(s).bytes())
        os << shortened("peak " + std::string(side) + ": " + peakPlace(*plan, s), screenColumns()) << '\n';
}

void printKinds(const plan::Plan &before, const plan::Plan &after, raw_ostream &os) {
  std::map<plan::BufferKind, Sides> kinds;
  for (const KindBytes &kind : memoryByKind(before))
    kinds[kind.kind].before = kind.atPeak;
  for (const KindBytes &kind : memoryByKind(after))
    kinds[kind.kind].after = kind.atPeak;
  os << "\nby kind, at the peak\n";
  Table table = bytesTable("kind");
  for (auto &[kind, bytes] : byChange(kinds))
    table.add({kindName(kind).str(), bytesText(bytes.before), bytesText(bytes.after), changeText(bytes)});
  table.print(os);
}

void printLayers(const plan::Plan &before, const plan::Plan &after, raw_ostream &os) {
  std::map<std::string, Sides> layers;
  for (const LayerGroup &layer : layersOf(before, buffersAtPeak(before)))
    layers[layer.name].before = layer.bytes;
  for (const LayerGroup &layer : layersOf(after, buffersAtPeak(after)))
    layers[layer.name].after = layer.bytes;
  os << "\nby layer, at the peak\n";
  Table table = bytesTable("layer");
  for (auto &[layer, bytes] : byChange(layers))
    table.add({layer, bytesText(bytes.before), bytesText(bytes.after),
               changeText(bytes)});
  table.print(os);
}

/// All buffers, those that differ in numbers only together; what is the same is not shown.
void printBuffers(const plan::Plan &before, const plan::Plan &after, raw_ostream &os) {
  struct Pair {
    Sides bytes, count;
  };
  std::map<std::pair<unsigned, std::string>, Pair> groups;
  auto collect = [&](const plan::Plan &plan, uint64_t Sides::*side) {
    std::vector<uint32_t> all(plan.buffers_size());
    std::iota(all.begin(), all.end(), 0);
    for (const BufferGroup &group : groupsOf(plan, all)) {
      Pair &pair = groups[{group.kind, group.name}];
      pair.bytes.*side = group.bytes;
      pair.count.*side = group.count;
    }
  };
  collect(before, &Sides::before);
  collect(after, &Sides::after);
  std::vector<std::pair<std::pair<unsigned, std::string>, Pair>> list(groups.begin(), groups.end());
  erase_if(list, [](auto &entry) { return !entry.second.bytes.change() && !entry.second.count.change(); });
  llvm::stable_sort(list, [](auto &a, auto &b) { return a.second.bytes.distance() > b.second.bytes.distance(); });
  os << "\nbuffers that came, went or changed, of the whole plan\n";
  if (list.empty()) {
    os << "  none\n";
    return;
  }
  Table table({{"change", Table::Right}, {""}, {"buffers"}, {"kind"}, {"name", Table::Flexible}});
  constexpr size_t kShown = 40;
  Sides rest;
  for (auto &[key, pair] : ArrayRef(list).take_front(kShown)) {
    const char *what = !pair.count.before ? "came" : !pair.count.after ? "went" : "changed";
    table.add({changeText(pair.bytes), what, utostr(pair.count.before) + " -> " + utostr(pair.count.after),
               kindName(plan::BufferKind(key.first)).str(), printable(key.second)});
  }
  for (auto &[key, pair] : ArrayRef(list).drop_front(std::min(list.size(), kShown))) {
    rest.before += pair.bytes.before;
    rest.after += pair.bytes.after;
  }
  if (list.size() > kShown)
    table.add({changeText(rest), "", "", "others", utostr(list.size() - kShown) + " more names"});
  table.print(os);
}

} // namespace

void printDiff(const plan::Plan &before, const plan::Plan &after, StringRef beforeName, StringRef afterName,
               raw_ostream &os) {
  os << "before: " << printable(beforeName) << "\nafter:  " << printable(afterName) << "\n\n";
  printOptions(before, after, os);
  printTotals(before, after, os);
  printKinds(before, after, os);
  printLayers(before, after, os);
  printBuffers(before, after, os);
}

} // namespace shardc
