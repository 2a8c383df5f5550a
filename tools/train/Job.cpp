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
#include "tools/train/LastResort.h"
#include "tools/train/Progress.h"
#include "tools/train/Spawn.h"
#include "tools/train/Startup.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
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
  llvm::Error warmUp(Trainer &trainer, Communicator &communicator, bool isFirst);
  bool wantsProcesses() const;
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
  if (llvm::Error error = checkMemory(plan, flags.memory))
    return error;
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

/// Ranks as processes, each with a device, talk by NCCL; as threads they share the first.
bool Job::wantsProcesses() const {
  if (launch || plan.ranks() <= 1)
    return false;
  if (flags.processes || device != DeviceKind::Cuda)
    return flags.processes;
  unsigned devices = cudaDevices();
  if (devices < plan.ranks())
    notes() << plan.ranks() << " ranks share one device: got " << devices << " of them\n";
  return devices >= plan.ranks();
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
  const bool isRoot = communicator.rank() == 0;
  RankDevice where{device, std::nullopt, flags.cudaGraphs, flags.tuning, isRoot && trace ? &*trace : nullptr,
                   isRoot ? &noteStartup : nullptr};
  if (launch)
    where.processRank = launch->rank;
  return shardc::createExecutor(plan, communicator, where);
}

llvm::Error Job::runRank(Communicator &communicator, Communicator *shadow) {
  if (llvm::Error error = comparePlans(communicator, hash))
    return error;
  const bool isRoot = communicator.rank() == 0, isFirst = launch || isRoot; // of this process
  auto note = [&](const char *done) {
    if (isRoot)
      noteStartup(done);
  };
  note("plan, data and weights found");
  auto executor = createExecutor(communicator, shadow);
  if (!executor)
    return executor.takeError();
  auto trainer = Trainer::create(*data, **executor, communicator);
  if (!trainer)
    return trainer.takeError();
  if (llvm::Error error = weights->fill(**executor))
    return error;
  note("weights filled");
  if (llvm::Error error = (*trainer)->openOutputs())
    return error;
  if (llvm::Error error = waitForAll(communicator))
    return error;

  if (device == DeviceKind::Cuda)
    if (llvm::Error error = warmUp(**trainer, communicator, isFirst))
      return error;
  note("ready for the first step");
  if (isRoot) {
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
    results = {*trained, isRoot, std::nullopt};
  return llvm::Error::success();
}

/// Whether all that is there in a step fits is known when it is there.
llvm::Error Job::warmUp(Trainer &trainer, Communicator &communicator, bool isFirst) {
  if (llvm::Error error = trainer.warmUp())
    return error;
  if (llvm::Error error = waitForAll(communicator))
    return error;
  if (isFirst) {
    MemoryUse use = memoryUse(plan, launch ? 1 : communicator.size());
    if (communicator.rank() == 0) {
      notes() << describe(use) << '\n';
      details() << "  beside it, more exactly: " << llvm::format("%.1f MiB\n", double(use.beside) / (1 << 20));
    }
    if (llvm::Error error = checkMemory(plan, flags.memory, use))
      return error;
  }
  return waitForAll(communicator);
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
  if (job.wantsProcesses()) {
    const unsigned ranks = job.plan.ranks();
    job.weights.reset(), job.data.reset(); // they open their own
    auto code = spawnSelf(flags.arguments, ranks, &stop);
    if (!code)
      return code.takeError();
    job.results.isRoot = false;
    job.results.exitCode = *code;
    return job.results;
  }
  if (!job.launch)
    groups = makeLocalGroups(job.plan.ranks(), flags.checkRaces);
  auto runRank = [&](Communicator &communicator) {
    shareCores(communicator.size(), job.launch.has_value());
    Communicator *shadow = flags.checkRaces ? groups.shadows[job.launch ? 0 : communicator.rank()].get() : nullptr;
    llvm::Error error = job.runRank(communicator, shadow);
    return error && shadow ? abortGroup(*shadow, std::move(error)) : std::move(error);
  };
  std::optional<LastResort> lastResort;
  if (job.launch)
    lastResort.emplace(*groups.ranks[0]);
  if (llvm::Error error = runRanks(groups.ranks, runRank))
    return error;
  return job.results;
}

} // namespace shardc
