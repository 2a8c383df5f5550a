// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace shardc {

static uint64_t largestOf(const plan::Plan &plan, plan::BufferKind kind) {
  for (const KindBytes &bytes : memoryByKind(plan))
    if (bytes.kind == kind)
      return bytes.largest;
  return 0;
}

void printComparison(ArrayRef<plan::Plan> plans, ArrayRef<std::string> names, raw_ostream &os) {
  os << "memory of a rank, each kind when it is largest;\n"
        "in flight: buckets that are gathered or reduced\n";
  Table memory({{"plan", Table::Flexible},
                {"ranks", Table::Right},
                {"stage", Table::Right},
                {"parameters", Table::Right},
                {"gradients", Table::Right},
                {"optimizer", Table::Right},
                {"activations", Table::Right},
                {"in flight", Table::Spare},
                {"in all", Table::Right}});
  for (auto [plan, name] : zip_equal(plans, names))
    memory.add({printable(name), utostr(plan.ranks()), utostr(plan.zero()),
                bytesText(largestOf(plan, plan::PARAMETER)),
                bytesText(largestOf(plan, plan::GRADIENT)),
                bytesText(largestOf(plan, plan::OPTIMIZER_STATE)),
                bytesText(largestOf(plan, plan::ACTIVATION)),
                bytesText(largestOf(plan, plan::COMMUNICATION)), bytesText(arenaBytes(plan))});
  memory.print(os);
  os << "\nan update step; wire: bytes that a rank sends;\n"
        "exposed: communication that no computing hides\n";
  Table step({{"plan", Table::Flexible},
              {"batch", Table::Right},
              {"accumulate", Table::Right},
              {"wire", Table::Right},
              {"scalars", Table::Spare},
              {"predicted", Table::Right},
              {"exposed", Table::Right},
              {"share", Table::Right},
              {"no prefetch", Table::Spare}});
  for (auto [plan, name] : zip_equal(plans, names)) {
    WireBytes wire = wireBytesPerStep(plan);
    step.add({printable(name), utostr(plan.batch()), utostr(plan.accumulate()),
              bytesText(wire.buckets), bytesText(wire.scalars),
              durationText(1e3 * plan.predicted_ms()), durationText(1e3 * plan.exposed_ms()),
              percentText(plan.exposed_ms(), plan.predicted_ms()),
              durationText(1e3 * plan.exposed_ms_without_prefetch())});
  }
  step.print(os);
}

} // namespace shardc
