// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Check.h"
#include "ir/base/Error.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace shardc {

Error checkPlan(const plan::Plan &plan) {
  for (auto *part : {check::checkBounds, check::checkTables, check::checkCollectives,
                     check::checkAliases, check::checkHazards, check::checkRegions, check::checkValues,
                     check::checkPlaces, check::checkTraining, check::checkVersions, check::checkIndices})
    if (Error error = part(plan))
      return error;
  return Error::success();
}

namespace check {
Error at(Error error, function_ref<std::string()> where) {
  if (!error)
    return Error::success();
  return handleErrors(std::move(error), [&](const UserError &mistake) {
    return userError(where() + ": " + mistake.text(), mistake.hint(), mistake.code());
  });
}

std::string describe(const plan::Plan &plan, unsigned program, unsigned command) {
  const plan::Command &c = plan.programs(program).commands(command);
  std::string text = printable(plan.programs(program).name()) + ": command " + utostr(command) +
                     " (" + printable(c.kernel());
  if (c.place() < uint32_t(plan.strings_size()) && !plan.strings(c.place()).empty())
    text += ", " + printable(plan.strings(c.place()));
  return text + ")";
}

std::string describe(const plan::Plan &plan, const Place &place) {
  if (place.host)
    return printable(plan.programs(place.program).name()) + ": the host's reading of outputs";
  return describe(plan, place.program, place.command);
}

std::string describeBuffer(const plan::Plan &plan, uint32_t buffer) {
  return "buffer " + utostr(buffer) + " (" + printable(plan.buffers(buffer).name()) + ")";
}

bool isGather(const plan::Command &c) { return c.kernel() == "all_gather_start"; }
bool isReduceScatter(const plan::Command &c) { return c.kernel() == "reduce_scatter_start"; }
bool isAllReduce(const plan::Command &c) { return c.kernel() == "all_reduce_start"; }
bool isStart(const plan::Command &c) { return isGather(c) || isReduceScatter(c) || isAllReduce(c); }
bool isDone(const plan::Command &c) { return c.kernel() == "collective_done"; }

bool isTraining(const plan::Program &program) {
  return StringRef(program.name()).starts_with("train");
}
bool isLastStep(const plan::Program &program) {
  return program.name() == "train" || program.name() == "train_last";
}

std::vector<uint64_t> programStarts(const plan::Plan &plan) {
  std::vector<uint64_t> starts{0};
  for (const plan::Program &program : plan.programs())
    starts.push_back(starts.back() + program.commands_size());
  return starts;
}

} // namespace check
} // namespace shardc
