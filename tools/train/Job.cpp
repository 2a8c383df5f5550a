// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Job.h"
#include "ir/base/FileHash.h"
#include "runtime/CheckRaces.h"
#include "runtime/Ranks.h"
#include "runtime/Trace.h"
#include "runtime/Weights.h"
#include "runtime/comm/Communicator.h"
#include "runtime/host/Parallel.h"
#include "tools/common/CommandLine.h"
#include "tools/train/Devices.h"
#include "tools/train/Groups.h"
#include "tools/train/Progress.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <thread>

namespace shardc {
namespace {

/// What the ranks of this process share.
struct Job {
  const TrainFlags &flags;
  const std::atomic<bool> &stop;
  std::optional<Launch> launch;
  plan::Plan plan = {};
  std::string hash = {}; ///< of the plan
  std::unique_ptr<const TrainData> data = nullptr;
  std::optional<StartingWeights> weights = std::nullopt;
  DeviceKind device = DeviceKind::Cpu;
  std::optional<Trace> trace = std::nullopt; ///< rank 0's
  JobResults results = {};

  llvm::Error open();
  llvm::Expected<std::unique_ptr<Executor>> createExecutor(Communicator &communicator, Communicator *shadow);
  llvm::Error runRank(Communicator &communicator, Communicator *shadow);
  llvm::Expected<TrainResults> train(Trainer &trainer, bool isRoot);
};

llvm::Error Job::open() {
  auto read = readPlan(flags.planPath);
  if (!read)
    return read.takeError();
  plan = std::move(*read);
  hash = fileHash(serializePlan(plan));
  if (llvm::Error error = checkFlags(plan, launch ? launch->size : 0))
    return error;
  auto chosen = chooseDevice(flags.device, plan);
  if (!chosen)
    return chosen.takeError();
  device = *chosen;
  if (!flags.trace.empty()) {
    trace.emplace(plan);
    if (llvm::Error error = checkWritable(flags.trace, 0))
      return error;
  }
  if (flags.tuning && !flags.tuning->empty())
    if (llvm::Error error = checkWritable(*flags.tuning, 0))
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

llvm::Expected<std::unique_ptr<Executor>> Job::createExecutor(Communicator &communicator, Communicator *shadow) {
  if (shadow)
    return createRaceChecked(plan, {&communicator, shadow, /*delaySeed=*/flags.train.numbers.seed + 1});
  RankDevice where{device, std::nullopt, flags.cudaGraphs, flags.tuning, communicator.rank() == 0 && trace ? &*trace : nullptr};
  if (launch)
    where.processRank = launch->rank;
  return shardc::createExecutor(plan, communicator, where);
}

llvm::Error Job::runRank(Communicator &communicator, Communicator *shadow) {
  if (llvm::Error error = comparePlans(communicator, hash))
    return error;
  auto executor = createExecutor(communicator, shadow);
  if (!executor)
    return executor.takeError();
  auto trainer = Trainer::create(*data, **executor, communicator);
  if (!trainer)
    return trainer.takeError();
  if (llvm::Error error = weights->fill(**executor))
    return error;
  if (llvm::Error error = (*trainer)->openOutputs())
    return error;
  if (llvm::Error error = waitForAll(communicator))
    return error;

  bool isRoot = communicator.rank() == 0, isFirst = launch || isRoot; // of this process
  if (isRoot) {
    if (device == DeviceKind::Cuda)
      notes() << describeMemory(plan, launch ? 1 : communicator.size()) << '\n';
    noteInitialised(weights->initialised());
    for (const std::string &note : data->notes)
      notes() << note << '\n';
  }
  if (isFirst)
    weights.reset(); // all have taken theirs
  auto trained = train(**trainer, isRoot);
  if (!trained)
    return trained.takeError();
  if (isFirst)
    results = {*trained, isRoot};
  return llvm::Error::success();
}

llvm::Expected<TrainResults> Job::train(Trainer &trainer, bool isRoot) {
  Progress progress;
  auto onStep = [&](const StepReport &report, int64_t total) { progress.step(report, total); };
  auto onEval = [&](int64_t step, const EvalReport &report) { progress.eval(step, report); };
  TrainHooks hooks;
  hooks.stop = &stop;
  if (isRoot) {
    hooks.onStep = onStep;
    hooks.onEval = onEval;
  }
  auto results = trainer.run(hooks);
  progress.finish();
  if (!results || !isRoot)
    return results;
  if (results->interrupted)
    notes() << "interrupted after step " << results->steps << " of " << results->totalSteps << '\n';
  if (trace) {
    if (llvm::Error error = trace->write(flags.trace))
      return error;
    trace->printKernels(notes());
    notes() << "the trace is in " << flags.trace << '\n';
  }
  if (std::vector<std::string> files = trainer.weightFiles(); !files.empty())
    notes() << "weights are in " << llvm::join(files, " and ") << '\n';
  return results;
}

/// A rank's share of the cores. Where a launcher has bound this process to fewer, it keeps those.
void shareCores(unsigned ranks, bool isLaunched) {
  int cores = int(std::thread::hardware_concurrency()), share = std::max(1, cores / int(ranks));
  if (ranks > 1)
    host::useThreads(isLaunched ? std::min(host::numThreads(), share) : host::threadsPerRank(ranks));
}

} // namespace

llvm::Expected<JobResults> runJob(const TrainFlags &flags, const std::atomic<bool> &stop) {
  auto launch = readLaunch(std::getenv);
  if (!launch)
    return launch.takeError();
  Job job{flags, stop, *launch};
  Groups groups;
  if (job.launch)
    if (llvm::Error error = joinGroups(*job.launch, flags.checkRaces, groups))
      return error;
  if (llvm::Error error = job.open()) // the other processes learn why they need not wait
    return job.launch ? abortGroup(*groups.ranks[0], std::move(error)) : std::move(error);
  if (!job.launch)
    groups = makeLocalGroups(job.plan.ranks(), flags.checkRaces);
  auto runRank = [&](Communicator &communicator) {
    shareCores(communicator.size(), job.launch.has_value());
    Communicator *shadow = flags.checkRaces ? groups.shadows[job.launch ? 0 : communicator.rank()].get() : nullptr;
    llvm::Error error = job.runRank(communicator, shadow);
    return error && shadow ? abortGroup(*shadow, std::move(error)) : std::move(error);
  };
  if (llvm::Error error = runRanks(groups.ranks, runRank))
    return error;
  return job.results;
}

} // namespace shardc
