// SPDX-License-Identifier: Apache-2.0
#include "runtime/Trainer.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "runtime/Evaluate.h"
#include "runtime/Inputs.h"
#include "runtime/Ranks.h"
#include "runtime/SaveWeights.h"
#include "runtime/StepPrograms.h"
#include "runtime/StepWork.h"
#include "runtime/comm/Communicator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <cmath>

namespace shardc {
namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whatever goes wrong after the first step ends the run with exit code 4.
llvm::Error asFault(const Communicator &communicator, llvm::Error error) {
  std::string own = "rank " + std::to_string(communicator.rank()) + ": ";
  return llvm::handleErrors(std::move(error), [&](const UserError &mistake) {
    llvm::StringRef hint = mistake.hint();
    if (hint.empty() && mistake.text().starts_with("rank ") && !mistake.text().starts_with(own))
      hint = "see what that rank said, or the system's log: processes are ended where memory is short";
    return userError(mistake.text(), hint, Exit::Fault);
  });
}

} // namespace

struct Trainer::State {
  const TrainData &data;
  Executor &executor;
  Communicator &communicator;
  TrainPrograms train;
  StepProgram update;
  Inputs inputs;
  std::optional<Evaluation> evaluation;
  BatchOrder order;
  StepWork work = workOf(data.plan);
  TrainLog log = {};
  bool isFed = false; ///< the first micro-step of the next update has its batch

  bool isRoot() const { return communicator.rank() == 0; }
  llvm::Error feed(int64_t step, int64_t microStep);
  llvm::Error startMicroSteps(int64_t step);
  llvm::Error beforeUpdate(int64_t step);
  llvm::Expected<StepReport> step(int64_t step, bool more);
  llvm::Error evaluate(const TrainHooks &hooks, TrainResults &results);
  llvm::Error loop(const TrainHooks &hooks, TrainResults &results);
  llvm::Error finish(llvm::ArrayRef<std::string> files, const TrainResults &results);
};

llvm::Expected<std::unique_ptr<Trainer>> Trainer::create(const TrainData &data, Executor &executor,
                                                         Communicator &communicator) {
  assert(communicator.size() == std::max(data.plan.ranks(), 1u) && communicator.rank() == executor.rank());
  auto train = TrainPrograms::find(data.plan, executor);
  if (!train)
    return train.takeError();
  auto update = StepProgram::find(data.plan, executor, "update");
  if (!update)
    return update.takeError();
  std::optional<Evaluation> evaluation;
  if (data.evalRows) {
    auto created = Evaluation::create(data.plan, executor, communicator, *data.evalRows);
    if (!created)
      return created.takeError();
    evaluation.emplace(std::move(*created));
  }
  fillRank(executor.scalars(), communicator.rank());
  Inputs inputs(data.plan, executor, data.rows);
  return std::unique_ptr<Trainer>(new Trainer(
      std::unique_ptr<State>(new State{data, executor, communicator, std::move(*train), *update, std::move(inputs),
                                       std::move(evaluation), data.order})));
}

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::~Trainer() = default;

std::vector<std::string> Trainer::weightFiles() const {
  const TrainOptions &options = state_->data.options;
  std::vector<std::string> files;
  if (!options.outputDir.empty())
    files.push_back(options.outputDir + "/model.safetensors");
  if (!options.saveWeights.empty())
    files.push_back(options.saveWeights);
  return files;
}

llvm::Error Trainer::openOutputs() {
  if (!state_->isRoot())
    return llvm::Error::success();
  const TrainOptions &options = state_->data.options;
  uint64_t bytes = parameterFileSize(state_->data.plan);
  if (!options.outputDir.empty())
    if (llvm::Error error = state_->log.open(options.outputDir, bytes))
      return error;
  for (const std::string &file : {options.saveWeights, options.dumpGradients})
    if (!file.empty())
      if (llvm::Error error = checkWritable(file, bytes))
        return error;
  return llvm::Error::success();
}

/// Gradients are written anew by the first micro-step, and nothing else of this stays.
llvm::Error Trainer::warmUp() {
  State &s = *state_;
  fillScalars(s.executor.scalars(), s.data.options.numbers, s.data.schedule.at(0), /*step=*/0, /*firstUpdate=*/true);
  fillShardIndex(s.executor.scalars(), 0, s.communicator.size(), s.communicator.rank());
  if (llvm::Error error = s.feed(0, 0))
    return error;
  llvm::SmallVector<int, 4> programs(s.train.microSteps.begin(), s.train.microSteps.end());
  programs.erase(std::unique(programs.begin(), programs.end()), programs.end());
  for (int program : programs)
    for (int run = 0; run < 2; ++run) // the second one as all that follow
      if (llvm::Error error = s.executor.run(program))
        return asFault(s.communicator, std::move(error));
  s.isFed = true;
  return llvm::Error::success();
}

llvm::Error Trainer::State::feed(int64_t step, int64_t microStep) {
  return inputs.feed(order.rows(step, communicator.rank(), microStep));
}

/// Begins all micro-steps of an update. Each batch is on its way while the device works on the one before.
llvm::Error Trainer::State::startMicroSteps(int64_t step) {
  const int64_t count = train.microSteps.size();
  if (!isFed)
    if (llvm::Error error = feed(step, 0))
      return error;
  isFed = false;
  for (int64_t micro = 0; micro < count; ++micro) {
    fillShardIndex(executor.scalars(), micro, communicator.size(), communicator.rank());
    if (llvm::Error error = executor.start(train.microSteps[micro]))
      return error;
    if (micro + 1 < count)
      if (llvm::Error error = feed(step, micro + 1))
        return error;
  }
  return train.last.fetch();
}

/// What must be seen before the update changes anything.
llvm::Error Trainer::State::beforeUpdate(int64_t step) {
  const TrainOptions &options = data.options;
  const bool dumps = step == 0 && !options.dumpGradients.empty();
  if (!options.stopOnNan && !dumps)
    return llvm::Error::success();
  if (llvm::Error error = executor.finish())
    return error;
  const StepResults trained = train.last.results();
  const double loss = trained.loss(), count = trained.lossCount * trained.gradientScale;
  if (options.stopOnNan && !std::isfinite(loss))
    return userError("step " + llvm::Twine(step + 1) + ": loss is not finite: got " + (std::isnan(loss) ? "nan" : "inf") +
                         ", wanted a number",
                     "lower --learning-rate or --max-grad-norm, or add warm-up; the weights were "
                     "not updated by this step");
  if (!dumps)
    return llvm::Error::success();
  return saveGradients(data.plan, executor, communicator, options.dumpGradients, count > 0 ? 1 / count : 0);
}

/// One update; `step` counts from 0. `more`: another one follows, unless something comes between.
llvm::Expected<StepReport> Trainer::State::step(int64_t step, bool more) {
  Clock::time_point start = Clock::now();
  StepReport report;
  report.step = step + 1;
  report.learningRate = data.schedule.at(step);
  fillScalars(executor.scalars(), data.options.numbers, report.learningRate, step, /*firstUpdate=*/step == 0);
  if (llvm::Error error = startMicroSteps(step))
    return error;
  if (llvm::Error error = beforeUpdate(step))
    return error;
  if (llvm::Error error = executor.start(update.index))
    return error;
  if (llvm::Error error = update.fetch())
    return error;
  if (more) {
    if (llvm::Error error = feed(step + 1, 0))
      return error;
    isFed = true;
  }
  if (llvm::Error error = executor.finish())
    return error;
  report.loss = train.last.results().loss();
  const StepResults updated = update.results();
  report.gradNorm = updated.gradNorm;
  if (update.lossScale)
    report.lossScale = updated.lossScale;
  report.skipped = updated.skipped != 0;
  const double seconds = std::max(secondsSince(start), 1e-9);
  report.milliseconds = seconds * 1e3;
  report.samplesPerSecond = double(order.rowsPerStep()) / seconds;
  report.tokensPerSecond = work.tokens / seconds;
  if (double peak = executor.peakFlops(); peak > 0)
    report.mfu = work.flops / seconds / peak;
  return report;
}

llvm::Error Trainer::State::evaluate(const TrainHooks &hooks, TrainResults &results) {
  isFed = false; // in the same buffers
  auto report = evaluation->run();
  if (!report)
    return report.takeError();
  results.eval = *report;
  if (hooks.onEval)
    hooks.onEval(results.steps, *report);
  return log.write(results.steps, *report); // only rank 0 has opened one
}

/// All updates that are due.
llvm::Error Trainer::State::loop(const TrainHooks &hooks, TrainResults &results) {
  double lossSum = 0;
  // Signals reach a process in the middle of a step, and perhaps not all: after each step the ranks agree.
  auto stopped = [&] { return anyRank(communicator, hooks.stop && *hooks.stop); };
  auto stop = stopped();
  while (stop && !*stop && results.steps < results.totalSteps) {
    auto report = step(results.steps, results.steps + 1 < results.totalSteps);
    if (!report)
      return report.takeError();
    ++results.steps;
    lossSum += report->loss;
    results.loss = lossSum / double(results.steps);
    if (llvm::Error error = log.write(*report))
      return error;
    if (hooks.onStep)
      hooks.onStep(*report, results.totalSteps);
    stop = stopped();
    int64_t every = data.options.evalSteps;
    bool due = evaluation && every > 0 && results.steps % every == 0 && results.steps < results.totalSteps;
    if (due && stop && !*stop)
      if (llvm::Error error = evaluate(hooks, results))
        return error;
  }
  return stop ? llvm::Error::success() : stop.takeError();
}

/// Weights and results, once all ranks are there; returns when they are on the disk.
llvm::Error Trainer::State::finish(llvm::ArrayRef<std::string> files, const TrainResults &results) {
  for (const std::string &file : files)
    if (llvm::Error error = saveParameters(data.plan, executor, communicator, file))
      return error;
  if (isRoot() && !data.options.outputDir.empty()) {
    auto write = [&](llvm::raw_ostream &os) {
      os << formatResults(results);
      return llvm::Error::success();
    };
    if (llvm::Error error = writeFileAtomically(data.options.outputDir + "/train_results.json", write))
      return error;
  }
  return waitForAll(communicator);
}

llvm::Expected<TrainResults> Trainer::run(const TrainHooks &hooks) {
  State &state = *state_;
  TrainResults results;
  results.totalSteps = state.data.schedule.totalSteps;
  Clock::time_point start = Clock::now();
  if (llvm::Error error = state.loop(hooks, results))
    return asFault(state.communicator, std::move(error));
  results.interrupted = results.steps < results.totalSteps;
  results.seconds = secondsSince(start);
  results.samples = results.steps * state.order.rowsPerStep();
  results.epoch = double(results.steps) / double(state.order.stepsPerEpoch());
  if (state.evaluation && !results.interrupted)
    if (llvm::Error error = state.evaluate(hooks, results))
      return asFault(state.communicator, std::move(error));
  if (llvm::Error error = state.finish(weightFiles(), results))
    return asFault(state.communicator, std::move(error));
  return results;
}

} // namespace shardc
