// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Tensor.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace shardc {
namespace {

struct Parameters {
  uint64_t all = 0;
  uint64_t largestModule = 0; ///< those of one module itself: names that are equal up to the last dot
};

Parameters countParameters(const plan::Plan &plan) {
  Parameters count;
  StringMap<uint64_t> modules;
  for (const plan::Parameter &p : plan.parameters()) {
    uint64_t n = numElements({p.dims().data(), size_t(p.dims_size())});
    uint64_t &module = modules[StringRef(p.name()).rsplit('.').first];
    count.all += n;
    count.largestModule = std::max(count.largestModule, module += n);
  }
  return count;
}

uint64_t largestBytes(const plan::Plan &plan, std::initializer_list<plan::BufferKind> kinds) {
  uint64_t sum = 0;
  for (const KindBytes &bytes : memoryByKind(plan))
    sum += is_contained(kinds, bytes.kind) ? bytes.largest : 0;
  return sum;
}

} // namespace

std::optional<uint64_t> deepSpeedEstimate(const plan::Plan &plan) {
  Parameters count = countParameters(plan);
  uint64_t states = 18 * count.all / plan.ranks(); // bytes: gradients 2 + 4, master 4, moments 8
  switch (plan.zero()) {
  case 2:
    return 2 * count.all + states;
  case 3:
    return 4 * count.largestModule + states;
  default:
    return std::nullopt;
  }
}

void printEstimate(ArrayRef<plan::Plan> plans, uint64_t budget, raw_ostream &os) {
  const plan::Plan &first = plans.front();
  Parameters count = countParameters(first);
  os << shortened(printable(first.model().path()), 60) << ": " << countText(count.all) << " parameters\n\n";
  Table table({{"ranks", Table::Right},
               {"zero", Table::Right},
               {"batch", Table::Right},
               {"takes", Table::Right},
               {budget ? "fits" : ""},
               {"states", Table::Right},
               {"DeepSpeed", Table::Right},
               {"activations", Table::Right},
               {"in flight", Table::Spare},
               {"step", Table::Right},
               {"a sample", Table::Spare}},
              0);
  for (const plan::Plan &plan : plans) {
    std::optional<uint64_t> deepSpeed = deepSpeedEstimate(plan);
    double samples = double(plan.batch()) * plan.ranks() * plan.accumulate();
    table.add({utostr(plan.ranks()), utostr(plan.zero()), utostr(plan.batch()), bytesText(rankBytes(plan)),
               !budget                     ? ""
               : rankBytes(plan) <= budget ? "yes"
                                           : "no",
               bytesText(largestBytes(plan, {plan::PARAMETER, plan::GRADIENT, plan::OPTIMIZER_STATE})),
               deepSpeed ? bytesText(*deepSpeed) : "-", bytesText(largestBytes(plan, {plan::ACTIVATION})),
               bytesText(largestBytes(plan, {plan::COMMUNICATION})), durationText(1e3 * plan.predicted_ms()),
               durationText(1e3 * plan.predicted_ms() / samples)});
  }
  table.print(os);
  os << "\ntakes: of a rank: arena, and what lies beside the plan"
     << (budget ? "; fits: into " + bytesText(budget) : std::string())
     << "\nstates: parameters, gradients and optimizer, each when it is largest\n"
        "DeepSpeed: what its formulas say of them (0.19, 16-bit, no offload)\n"
        "in flight: buckets that are gathered or reduced\n"
        "a sample: the predicted step over the rows of an update, all ranks' together\n";
}

} // namespace shardc
