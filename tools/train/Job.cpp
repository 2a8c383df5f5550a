// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Job.h"
#include "ir/base/FileHash.h"
#include "runtime/Ranks.h"
#include "runtime/Weights.h"
#include "runtime/comm/Local.h"
#include "tools/common/CommandLine.h"
#include "tools/train/Launcher.h"
#include "tools/train/Progress.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

namespace shardc {
namespace {

/// What the ranks of this process share.
struct Job {
  plan::Plan plan;
  std::string hash; ///< of the plan
  std::unique_ptr<const TrainData> data;
  std::optional<StartingWeights> weights;
  const volatile std::sig_atomic_t &stop;

  llvm::Error open(const TrainFlags &flags, unsigned processes);
  llvm::Error runRank(Communicator &communicator, TrainResults &results);
};

llvm::Error Job::open(const TrainFlags &flags, unsigned processes) {
  auto read = readPlan(flags.planPath);
  if (!read)
    return read.takeError();
  plan = std::move(*read);
  hash = fileHash(serializePlan(plan));
  if (llvm::Error error = checkFlags(plan, processes))
    return error;
  auto opened = TrainData::open(plan, flags.train);
  if (!opened)
    return opened.takeError();
  data = std::move(*opened);
  auto found = StartingWeights::open(plan, flags.weights);
  if (!found)
    return found.takeError();
  weights.emplace(std::move(*found));
  return llvm::Error::success();
}

void noteInitialised(llvm::ArrayRef<std::string> names) {
  if (!names.empty())
    notes() << "initialised " << names.size() << " parameters (--init-weights)\n";
  for (const std::string &name : names)
    details() << "  " << name << '\n';
}

llvm::Error Job::runRank(Communicator &communicator, TrainResults &results) {
  const bool isRoot = communicator.rank() == 0;
  if (llvm::Error error = comparePlans(communicator, hash))
    return error;
  ExecutorOptions options;
  options.communicator = &communicator;
  auto executor = Executor::create(plan, options);
  if (!executor)
    return executor.takeError();
  auto created = Trainer::create(*data, **executor, communicator);
  if (!created)
    return created.takeError();
  Trainer &trainer = **created;
  weights->fill(**executor);
  if (llvm::Error error = trainer.openOutputs())
    return error;
  if (llvm::Error error = waitForAll(communicator))
    return error;

  TrainHooks hooks;
  hooks.stop = &stop;
  Progress progress;
  auto onStep = [&](const StepReport &report, int64_t total) { progress.step(report, total); };
  auto onEval = [&](int64_t step, const EvalReport &report) { progress.eval(step, report); };
  if (isRoot) {
    noteInitialised(weights->initialised());
    for (const std::string &note : data->notes)
      notes() << note << '\n';
    hooks.onStep = onStep;
    hooks.onEval = onEval;
  }
  auto trained = trainer.run(hooks);
  progress.finish();
  if (!trained)
    return trained.takeError();
  if (!isRoot)
    return llvm::Error::success();
  results = *trained;
  if (results.interrupted)
    notes() << "interrupted after step " << results.steps << " of " << results.totalSteps << '\n';
  if (std::vector<std::string> files = trainer.weightFiles(); !files.empty())
    notes() << "weights are in " << llvm::join(files, " and ") << '\n';
  return llvm::Error::success();
}

} // namespace

llvm::Expected<TrainResults> runJob(const TrainFlags &flags, const volatile std::sig_atomic_t &stop) {
  auto launch = readLaunch(std::getenv);
  if (!launch)
    return launch.takeError();
  if (*launch)
    return userError("environment: more than one rank is not built yet: got " + llvm::Twine((*launch)->size) +
                         ", wanted 1",
                     "start one process");
  Job job{{}, "", nullptr, std::nullopt, stop};
  if (llvm::Error error = job.open(flags, 0))
    return error;
  TrainResults results;
  std::vector<std::unique_ptr<Communicator>> group = makeLocalGroup(job.plan.ranks());
  auto runRank = [&](Communicator &communicator) { return job.runRank(communicator, results); };
  if (llvm::Error error = runRanks(group, runRank))
    return error;
  return results;
}

} // namespace shardc
