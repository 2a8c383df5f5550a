// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace llvm;

namespace shardc {
namespace {

/// The first result, and how many more there are.
std::string results(const plan::Command &c) {
  if (c.outputs_size() == 0)
    return "";
  std::string text = typeText(c.outputs(0).dtype(), c.outputs(0).dims());
  return c.outputs_size() == 1 ? text : text + " +" + utostr(c.outputs_size() - 1);
}

} // namespace

void printCommands(const plan::Plan &plan, raw_ostream &os) {
  constexpr const char *kPhases[] = {"fwd", "bwd", "upd"};
  uint64_t position = 0;
  for (const plan::Program &program : plan.programs()) {
    os << "program " << printable(program.name()) << "\n";
    Table table({{"at", Table::Right},
                 {"stream"},
                 {"phase"},
                 {"kernel"},
                 {"result", Table::Spare},
                 {"FLOP", Table::Spare},
                 {"predicted", Table::Right},
                 {"place", Table::Flexible}},
                0);
    for (const plan::Command &c : program.commands())
      table.add({utostr(position++), streamName(c.stream()), kPhases[c.phase()], printable(c.kernel()), results(c),
                 c.flops() > 0 ? siText(c.flops(), "") : "", durationText(c.predicted_us()),
                 printable(plan.strings(c.place()))});
    table.printList(os);
    os << '\n';
  }
}

void printBuffers(const plan::Plan &plan, raw_ostream &os) {
  std::vector<uint32_t> order(plan.buffers_size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return plan.buffers(a).bytes() > plan.buffers(b).bytes();
  });
  Table table({{"buffer", Table::Right},
               {"bytes", Table::Right},
               {"offset", Table::Right},
               {"live"},
               {"kind"},
               {"name", Table::Flexible}},
              0);
  for (uint32_t index : order) {
    const plan::Buffer &b = plan.buffers(index);
    std::string live =
        b.persistent() ? "always" : "[" + utostr(b.first()) + ", " + utostr(b.last()) + ")";
    std::string where =
        (plan.spaces_size() > 1 ? utostr(b.space()) + ":" : "") + utostr(b.offset());
    table.add({utostr(index), utostr(b.bytes()), where, live, kindName(b.kind()).str(),
               printable(fullName(plan, b))});
  }
  table.printList(os);
}

} // namespace shardc
