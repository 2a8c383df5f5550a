// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <numeric>

using namespace llvm;

namespace shardc {
namespace {

std::string fixed(double value, const char *form) {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string shapes(const google::protobuf::RepeatedPtrField<plan::Ref> &refs) {
  std::string text;
  for (const plan::Ref &ref : refs)
    text += (text.empty() ? "" : " ") +
            (ref.absent() ? std::string("-") : typeText(ref.dtype(), ref.dims()));
  return text;
}

} // namespace

void printCommands(const plan::Plan &plan, raw_ostream &os) {
  constexpr const char *kPhases[] = {"forward", "backward", "update"};
  uint64_t position = 0;
  for (const plan::Program &program : plan.programs()) {
    os << "program " << printable(program.name()) << "\n";
    Table table({{"at", Table::Right},
                 {"phase"},
                 {"kernel", Table::Left},
                 {"inputs", Table::Flexible},
                 {"outputs", Table::Flexible},
                 {"MFLOP", Table::Right},
                 {"us", Table::Right},
                 {"place", Table::Flexible}});
    for (const plan::Command &c : program.commands())
      table.add({utostr(position++), kPhases[c.phase()], printable(c.kernel()), shapes(c.inputs()),
                 shapes(c.outputs()), fixed(c.flops() / 1e6, "%.1f"),
                 fixed(c.predicted_us(), "%.1f"), printable(plan.strings(c.place()))});
    table.print(os);
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
               {"space", Table::Right},
               {"offset", Table::Right},
               {"live"},
               {"kind"},
               {"layer", Table::Flexible},
               {"name", Table::Flexible}},
              0);
  for (uint32_t index : order) {
    const plan::Buffer &b = plan.buffers(index);
    std::string live =
        b.persistent() ? "always" : "[" + utostr(b.first()) + ", " + utostr(b.last()) + ")";
    table.add({utostr(index), utostr(b.bytes()), utostr(b.space()), utostr(b.offset()), live,
               kindName(b.kind()).str(), printable(plan.strings(b.layer())), printable(b.name())});
  }
  table.print(os);
}

} // namespace shardc
