// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Tensor.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace shardc {
namespace {

void printModel(const plan::Plan &plan, raw_ostream &os) {
  const plan::Model &m = plan.model();
  Section section(os, "model");
  std::string origin = m.opset() ? "  opset " + utostr(m.opset()) : "";
  if (!m.producer().empty())
    origin += ", " + printable(m.producer());
  if (m.file_bytes())
    origin += ", " + bytesText(m.file_bytes());
  section.line(shortened(printable(m.path()), 60) + origin);
  uint64_t elements = 0, trained = 0, ties = 0, absent = 0, bytes = 0;
  for (const plan::Parameter &p : plan.parameters()) {
    uint64_t n = numElements({p.dims().data(), size_t(p.dims_size())});
    elements += n;
    bytes += n * byteSize(DType(p.dtype()));
    trained += p.trainable();
    ties += p.ties_size();
    absent += p.source().kind() == plan::ValueSource::ABSENT;
  }
  section.line(countText(elements) + " parameters in " + Twine(plan.parameters_size()) +
               " tensors, " + bytesText(bytes) + "; " + Twine(trained) + " trained, " +
               Twine(ties) + " more names tied to them" +
               (absent ? "; " + Twine(absent) + " without values in the file" : Twine()));
}

void printStep(const plan::Plan &plan, raw_ostream &os) {
  Section section(os, "step");
  section.line(Twine(plan.forward_ops()) + " ops forward, " + Twine(plan.backward_ops()) +
               " backward; batch " + Twine(plan.batch()) + " a rank and micro-step, " +
               Twine(plan.accumulate()) + " micro-step" + (plan.accumulate() == 1 ? "" : "s") +
               " an update");
  std::string commands;
  for (const plan::Program &p : plan.programs())
    commands +=
        (commands.empty() ? "" : ", ") + utostr(p.commands_size()) + " in " + printable(p.name());
  section.line("commands: " + commands);
  std::string options;
  for (const plan::Attr &a : plan.options())
    options += (options.empty() ? "" : " ") + printable(a.name()) + "=" + attrText(a);
  if (!options.empty())
    Section(os, "options").line(options);
}

void printSharding(const plan::Plan &plan, raw_ostream &os) {
  uint64_t largest = 0, trained = 0;
  for (const plan::Bucket &b : plan.buckets()) {
    largest = std::max(largest, b.elements() * byteSize(DType(b.dtype())));
    trained += b.gradient_buffer() >= 0;
  }
  Section section(os, "zero");
  section.line("stage " + Twine(plan.zero()) + " over " + Twine(plan.ranks()) + " rank" +
               (plan.ranks() == 1 ? "" : "s") + ": " + Twine(plan.buckets_size()) + " buckets, " +
               Twine(trained) + " trained, the largest " + bytesText(largest) +
               (plan.ranks() == 1 ? "; nothing on the wire" : ""));
  if (plan.ranks() == 1)
    return;
  struct Sum {
    uint64_t count = 0, sent = 0;
  };
  MapVector<StringRef, Sum> ops;
  std::vector<WireUse> uses = wireUses(plan);
  for (const WireUse &use : uses)
    if (use.perStep()) {
      Sum &sum = ops[use.isScalar() ? "scalars" : StringRef(use.op)];
      sum.count += use.count;
      sum.sent += use.sent;
    }
  WireBytes wire = wireBytesPerStep(plan);
  std::string text = "a rank sends " + bytesText(wire.buckets + wire.scalars) + " a step";
  for (auto &[op, sum] : ops)
    text += (&op == &ops.front().first ? ": " : ", ") + utostr(sum.count) + " " + op.str() + " " +
            bytesText(sum.sent);
  section.line(text);
}

void printMemory(const plan::Plan &plan, raw_ostream &os) {
  Section section(os, "memory");
  std::string gap;
  raw_string_ostream(gap) << format("%.2f", gapPercent(plan));
  section.line(
      bytesText(arenaBytes(plan)) + " a rank (" + Twine(arenaBytes(plan)) +
      " bytes), lower bound " + bytesText(lowerBoundBytes(plan)) + ", gap " + gap + " %" +
      (plan.floor_bytes() ? "; " + bytesText(plan.floor_bytes()) + " outside the plan" : Twine()));
  Table table({{"at the peak", Table::Left},
               {"bytes", Table::Right},
               {"share", Table::Right},
               {"at its own peak", Table::Right},
               {"", Table::Left}},
              10);
  // Bars take what the numbers leave of the line.
  constexpr unsigned kNumbers = 63, kLongestBar = 35;
  double bar = std::min(kLongestBar, screenColumns() - std::min(screenColumns(), kNumbers));
  uint64_t all = 0;
  auto kinds = memoryByKind(plan);
  for (auto &[kind, bytes, largest] : kinds)
    all += bytes;
  for (auto &[kind, bytes, largest] : kinds) {
    double share = all ? double(bytes) / double(all) : 0;
    table.add({kindName(kind).str(), bytesText(bytes), percentText(double(bytes), double(all)),
               bytesText(largest), std::string(size_t(share * bar + 0.5), '#')});
  }
  table.print(os);
}

void printTime(const plan::Plan &plan, raw_ostream &os) {
  Section section(os, "time");
  double flops = 0, moved = 0;
  for (const plan::Program &p : plan.programs())
    for (const plan::Command &c : p.commands())
      if (c.communicator() == 0) {
        flops += double(runsPerStep(plan, p)) * c.flops();
        moved += double(runsPerStep(plan, p)) * c.moved_bytes();
      }
  section.line("predicted " + durationText(1e3 * plan.predicted_ms()) +
               " a step: " + siText(flops, "FLOP") + ", " + siText(moved, "B") + " moved");
  if (plan.ranks() > 1)
    section.line("of that " + durationText(1e3 * plan.exposed_ms()) + " (" +
                 percentText(plan.exposed_ms(), plan.predicted_ms()) +
                 ") is communication that computing does not hide; without prefetch " +
                 durationText(1e3 * plan.exposed_ms_without_prefetch()));
}

} // namespace

void printScreen(const plan::Plan &plan, raw_ostream &os) {
  printModel(plan, os);
  printStep(plan, os);
  printSharding(plan, os);
  printMemory(plan, os);
  printTime(plan, os);
}

} // namespace shardc
