// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/Wire.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace shardc {

static bool onLink(StringRef kernel) {
  plan::Command command;
  command.set_kernel(kernel.str());
  return isCollective(command);
}

/// What each space is divided into. A region has its own lower bound; the sum of them is above that of the space where they are fullest at
/// different times.
static void printRegions(const plan::Plan &plan, raw_ostream &os) {
  Table table({{"space"},
               {"region", Table::Flexible},
               {"bytes", Table::Right},
               {"lower bound", Table::Right},
               {"offset", Table::Right},
               {"packed by", Table::Flexible}});
  for (auto [index, space] : enumerate(plan.spaces())) {
    std::string name = utostr(index) + " " + kindName(space.kind()).str();
    table.add({name, "all", bytesText(space.bytes()), bytesText(space.lower_bound()), "0", printable(space.method())});
    for (const plan::Region &r : space.regions())
      table.add({name, printable(r.name()), bytesText(r.bytes()), bytesText(r.lower_bound()), utostr(r.offset()), ""});
  }
  os << "\nspaces\n";
  table.print(os);
}

void printDetails(const plan::Plan &plan, raw_ostream &os) {
  os << "\ninputs\n";
  Table inputs({{"name", Table::Flexible}, {"type"}, {"values"}});
  for (const plan::Input &i : plan.inputs()) {
    std::string range =
        i.low() < i.high() ? "[" + itostr(i.low()) + ", " + itostr(i.high()) + ")" : "any";
    if (i.has_ignore())
      range += " or " + itostr(i.ignore());
    inputs.add({printable(i.name()), typeText(i.dtype(), i.dims()), range});
  }
  inputs.print(os);
  os << "\noutputs\n";
  Table outputs({{"name", Table::Flexible}, {"of"}, {"type"}});
  for (const plan::Output &o : plan.outputs())
    outputs.add(
        {printable(o.name()), printable(o.program()), typeText(o.ref().dtype(), o.ref().dims())});
  outputs.print(os);
  os << "\nbuckets\n";
  Table buckets({{"name", Table::Flexible},
                 {"elements", Table::Right},
                 {"bytes", Table::Right},
                 {"decays", Table::Right},
                 {"tensors", Table::Right},
                 {"trained"}});
  std::vector<unsigned> tensors(plan.buckets_size());
  for (const plan::Parameter &p : plan.parameters())
    ++tensors[p.bucket()];
  for (int i = 0; i < plan.buckets_size(); ++i) {
    const plan::Bucket &b = plan.buckets(i);
    buckets.add({printable(b.name()), utostr(b.elements()),
                 bytesText(b.elements() * byteSize(DType(b.dtype()))), utostr(b.decay_end()),
                 utostr(tensors[i]), b.gradient_buffer() >= 0 ? "yes" : "no"});
  }
  buckets.print(os);
  printRegions(plan, os);
  if (plan.ranks() > 1) {
    os << "\non the wire\n";
    Table wire({{"program"},
                {"op"},
                {"bucket", Table::Flexible},
                {"times", Table::Right},
                {"bytes", Table::Right},
                {"a rank sends", Table::Right}});
    for (const WireUse &use : wireUses(plan))
      wire.add({printable(use.program), use.op, use.isScalar() ? "(scalars)" : printable(use.bucket),
                utostr(use.count), bytesText(use.bytes), bytesText(use.sent)});
    wire.print(os);
  }
  for (const plan::Program &program : plan.programs()) {
    struct Sum {
      unsigned count = 0;
      double flops = 0, moved = 0, us = 0;
    };
    MapVector<StringRef, Sum> kernels;
    Sum all;
    for (const plan::Command &c : program.commands())
      for (Sum *s : {&kernels[c.kernel()], &all}) {
        ++s->count;
        s->flops += c.flops();
        s->moved += c.moved_bytes();
        s->us += c.communicator() && s == &all ? 0 : c.predicted_us();
      }
    os << "\nprogram " << printable(program.name()) << "\n";
    Table table({{"kernel", Table::Flexible},
                 {"commands", Table::Right},
                 {"work", Table::Right},
                 {"moved", Table::Right},
                 {"predicted", Table::Right},
                 {"share", Table::Right}});
    auto rows = kernels.takeVector();
    llvm::stable_sort(rows, [](auto &a, auto &b) { return a.second.us > b.second.us; });
    rows.push_back({"all", all});
    for (auto &[kernel, s] : rows)
      table.add({printable(kernel), utostr(s.count), siText(s.flops, "FLOP"), siText(s.moved, "B"),
                 durationText(s.us), onLink(kernel) ? "link" : percentText(s.us, all.us)});
    table.print(os);
  }
}

} // namespace shardc
