// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace shardc {
namespace {

constexpr size_t kLargest = 10;

/// Bytes and share, exact, so that sums can be checked.
std::vector<std::string> amounts(uint64_t bytes, const Peak &peak) {
  return {countText(bytes), bytesText(bytes), percentText(double(bytes), double(peak.bytes))};
}

void addRow(Table &table, uint64_t bytes, const Peak &peak, std::initializer_list<std::string> rest) {
  std::vector<std::string> cells = amounts(bytes, peak);
  cells.insert(cells.end(), rest.begin(), rest.end());
  table.add(std::move(cells));
}

void printKinds(const plan::Plan &plan, const Peak &peak, raw_ostream &os) {
  struct Sum {
    plan::BufferKind kind;
    uint64_t bytes = 0;
    unsigned count = 0;
  };
  std::vector<Sum> sums(plan::BufferKind_ARRAYSIZE);
  for (uint32_t index : peak.buffers) {
    Sum &sum = sums[plan.buffers(index).kind()];
    sum.kind = plan.buffers(index).kind();
    sum.bytes += alignedBytes(plan.buffers(index));
    ++sum.count;
  }
  llvm::stable_sort(sums, [](const Sum &a, const Sum &b) { return a.bytes > b.bytes; });
  Table table({{"bytes", Table::Right},
               {"", Table::Right},
               {"share", Table::Right},
               {"buffers", Table::Right},
               {"by kind"}});
  for (const Sum &sum : sums)
    if (sum.count)
      addRow(table, sum.bytes, peak, {utostr(sum.count), kindName(sum.kind).str()});
  table.print(os);
}

/// Alike ones of all layers as one.
void printLargest(const plan::Plan &plan, const Peak &peak, raw_ostream &os) {
  Table table({{"bytes", Table::Right},
               {"", Table::Right},
               {"share", Table::Right},
               {"buffers", Table::Right},
               {"each up to", Table::Spare},
               {"kind"},
               {"the largest", Table::Flexible}});
  std::vector<BufferGroup> groups = groupsOf(plan, peak.buffers);
  size_t listed = std::min(groups.size(), kLargest);
  for (const BufferGroup &group : ArrayRef(groups).take_front(listed))
    addRow(
        table, group.bytes, peak,
        {utostr(group.count), bytesText(group.largest), kindName(group.kind).str(), printable(group.shown)});
  uint64_t bytes = 0;
  unsigned count = 0;
  for (const BufferGroup &group : ArrayRef(groups).drop_front(listed)) {
    bytes += group.bytes;
    count += group.count;
  }
  if (count)
    addRow(table, bytes, peak, {utostr(count), "", "", "all others"});
  table.print(os);
}

} // namespace

void printShortfall(const plan::Plan &plan, uint64_t budget, raw_ostream &os) {
  for (int s = 0; s < plan.spaces_size(); ++s) {
    if (plan.spaces(s).kind() != plan::Space::DEVICE)
      continue;
    Peak peak = findPeak(plan, s);
    os << "peak: " << countText(peak.bytes) << " bytes (" << bytesText(peak.bytes) << ") in "
       << peak.buffers.size() << " buffers\n";
    os << shortened("at " + peakPlace(plan, s), screenColumns()) << "\n\n";
    printKinds(plan, peak, os);
    os << '\n';
    printLargest(plan, peak, os);
    os << '\n';
    uint64_t beside = rankBytes(plan) - plan.spaces(s).bytes();
    if (peak.bytes + beside > budget)
      os << "No packing can help: so much lives at once, and " << bytesText(beside) << " lies beside it.\n";
    else
      os << "It would fit, were packing perfect: it takes " << countText(plan.spaces(s).bytes() - peak.bytes)
         << " bytes more than live at once.\n";
  }
}

} // namespace shardc
