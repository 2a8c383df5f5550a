// SPDX-License-Identifier: Apache-2.0
#include "tools/compile/Budgeting.h"
#include "ir/base/Error.h"
#include "ir/base/Hint.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "passes/Machine.h"
#include "tools/common/CommandLine.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Parallel.h"

using namespace llvm;

namespace shardc {
namespace {

/// The flags that make `to` of `from`.
std::string flagsOf(const Compiler &compiler, const Setting &from, const Setting &to) {
  std::vector<std::string> flags;
  if (to.ranks != from.ranks)
    flags.push_back("--ranks " + std::to_string(to.ranks));
  if (to.zero != from.zero || (to.ranks > 1 && from.ranks == 1))
    flags.push_back("--zero " + std::to_string(to.zero));
  if (to.batch != from.batch)
    flags.push_back(compiler.batchFlags(to.batch));
  if (to.accumulate != from.accumulate)
    flags.push_back("--accumulate " + std::to_string(to.accumulate));
  return join(flags, " ");
}

std::string bytes(uint64_t n) {
  return n < 1024 ? countText(n) + " bytes" : bytesText(n) + " (" + countText(n) + " bytes)";
}

/// Notes why, and what would fit. `plan`: of `now`.
Error doesNotFit(Compiler &compiler, Trials &trials, const Setting &now, const plan::Plan &plan) {
  notes() << '\n';
  printShortfall(plan, trials.budget(), notes());
  bool hopeless = trials.budget() <= plan.floor_bytes(); // more ranks have no less beside them
  std::vector<Trial> changes = hopeless ? std::vector<Trial>() : changesThatFit(trials, now);
  notes() << "\nWhat would fit, each compiled to be sure:\n";
  Table table({{"change"}, // whole, to be typed
               {"takes", Table::Right},
               {"rows an update", Table::Spare},
               {"step", Table::Right},
               {"a sample", Table::Right},
               {"price", Table::Right}});
  double sample = plan.predicted_ms() / now.samples();
  auto add = [&](const std::string &what, uint64_t takes, const Setting &setting, double ms) {
    double price = (ms / setting.samples() - sample) / sample * 100;
    std::string text;
    raw_string_ostream(text) << format("%+.1f %%", price);
    table.add({what, bytesText(takes), countText(uint64_t(setting.samples())), durationText(1e3 * ms),
               durationText(1e3 * ms / setting.samples()), what == "as it is" ? "" : text});
  };
  add("as it is", rankBytes(plan), now, plan.predicted_ms());
  for (const Trial &change : changes)
    add(flagsOf(compiler, now, change.setting), change.bytes, change.setting, change.stepMs);
  table.print(notes());
  if (changes.empty())
    notes() << "None of a higher stage, more micro-steps, a smaller batch and up to eight times the ranks.\n";
  notes() << "A sample: the predicted step over the rows of an update, all ranks'.\n\n";
  std::string hint = "allow more, or take a smaller model or shorter sequences";
  if (!changes.empty())
    hint = flagsOf(compiler, now, changes.front().setting) + " fits";
  else if (hopeless)
    hint = "no plan does: allow more than " + bytesText(plan.floor_bytes()) +
           ", or give a --machine FILE.json whose floor_bytes are less";
  return userError("--memory: does not fit: got " + bytes(trials.budget()) + ", wanted " +
                       bytes(rankBytes(plan)) + ": " + bytesText(rankBytes(plan) - plan.floor_bytes()) +
                       " for the plan, " + bytesText(plan.floor_bytes()) + " beside it by its machine",
                   hint, Exit::DoesNotFit);
}

Setting settingOf(const plan::Plan &plan) {
  return {int64_t(plan.batch()), plan.ranks(), plan.zero(), plan.accumulate()};
}

/// For --batch max: --memory, or what the machine has where that is known. Nothing else may say the batch.
Expected<uint64_t> budgetOf(Compiler &compiler, const Flags &flags) {
  auto batch = compiler.batch();
  if (batch)
    return userError("--batch: got max, and " + Twine(*batch) +
                         " from --dim, --input-shape or the model, wanted one of them",
                     "leave the batch out of --dim; of a model that fixes it, export one with a symbolic batch");
  consumeError(batch.takeError()); // unbound as it should be; any other mistake shows again
  if (flags.compile.memory)
    return flags.compile.memory;
  auto machine = loadMachine(flags.compile.machine);
  if (!machine)
    return machine.takeError();
  if (!machine->memoryBytes)
    return userError("--batch: got max without a budget, wanted --memory SIZE too",
                     "add --memory 24GiB, or a --machine that says memory_bytes");
  return machine->memoryBytes;
}

/// With a row where nothing fits.
Expected<plan::Plan> planOfLargestBatch(Compiler &compiler, Setting setting, uint64_t budget) {
  auto plan = [&](const Setting &s) { return compiler.plan(s); };
  Trials trials(plan, budget);
  auto largest = largestBatch(trials, setting);
  if (!largest)
    return largest.takeError();
  setting.batch = largest->most ? largest->most->setting.batch : 1;
  return compiler.plan(setting);
}

} // namespace

Expected<Compilation> compileWithinBudget(Compiler &compiler, const Flags &flags) {
  std::optional<Setting> setting;
  uint64_t budget = flags.compile.memory;
  auto plan = [&](const Setting &s) { return compiler.plan(s); };
  if (flags.largestBatch) {
    auto found = budgetOf(compiler, flags);
    if (!found)
      return found.takeError();
    budget = *found;
    Trials trials(plan, budget);
    setting = Setting{1, flags.compile.ranks, flags.compile.zero, flags.compile.accumulate};
    auto largest = largestBatch(trials, *setting);
    if (!largest)
      return largest.takeError();
    if (largest->most) {
      setting = largest->most->setting;
      notes() << "note: batch " << setting->batch;
      if (largest->more)
        notes() << " is the largest that fits " << bytesText(budget) << ": one more takes " << bytes(largest->more->bytes);
      else if (!largest->refused.empty())
        notes() << " is the largest that can be compiled: one more cannot, " << largest->refused;
      else
        notes() << " fits " << bytesText(budget) << "; more rows are not looked at";
      notes() << "\n";
    }
  }
  auto result = compiler.compile(flags.debug, setting);
  if (!result || !result->plan || !budget || rankBytes(*result->plan) <= budget)
    return result;
  Trials trials(plan, budget);
  trials.add(settingOf(*result->plan), *result->plan);
  return doesNotFit(compiler, trials, settingOf(*result->plan), *result->plan);
}

void printBudget(const Compilation &compilation, const Flags &flags, raw_ostream &os) {
  if (!flags.compile.memory)
    return;
  uint64_t takes = rankBytes(*compilation.plan);
  os << "budget    " << bytesText(takes) << " of " << bytesText(flags.compile.memory)
     << " with what lies beside the plan; " << bytesText(flags.compile.memory - takes) << " free\n";
}

Error printEstimates(Compiler &compiler, const Flags &flags, raw_ostream &os) {
  uint64_t budget = flags.compile.memory;
  int64_t batch = 1;
  if (flags.largestBatch) {
    auto found = budgetOf(compiler, flags);
    if (!found)
      return found.takeError();
    budget = *found;
  } else {
    auto asked = compiler.batch();
    if (!asked)
      return asked.takeError();
    batch = *asked;
  }
  std::vector<Setting> settings;
  SmallVector<unsigned, 4> ranks = {1, 2, 4, 8};
  if (flags.ranksGiven)
    ranks = {flags.compile.ranks};
  for (unsigned n : ranks)
    for (unsigned zero = 0; zero <= 3; ++zero) {
      if (flags.zeroGiven ? zero != flags.compile.zero
                          : n == 1 && zero > 0) // one rank has nobody to share with
        continue;
      settings.push_back({batch, n, zero, flags.compile.accumulate});
    }
  std::vector<std::optional<Expected<plan::Plan>>> compiled(settings.size());
  parallelFor(0, settings.size(), [&](size_t i) {
    compiled[i].emplace(flags.largestBatch ? planOfLargestBatch(compiler, settings[i], budget)
                                           : compiler.plan(settings[i]));
  });
  std::vector<plan::Plan> plans;
  Error error = Error::success();
  for (auto &plan : compiled) {
    if (*plan)
      plans.push_back(std::move(**plan));
    else if (Error other = plan->takeError(); !error)
      error = std::move(other);
    else
      consumeError(std::move(other));
  }
  if (error)
    return error;
  printEstimate(plans, budget, os);
  return Error::success();
}

} // namespace shardc
