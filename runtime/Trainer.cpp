// SPDX-License-Identifier: Apache-2.0
#include "runtime/Trainer.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "runtime/Evaluate.h"
#include "runtime/Inputs.h"
#include "runtime/Ranks.h"
#include "runtime/SaveWeights.h"
#include "runtime/StepPrograms.h"
#include "runtime/comm/Communicator.h"
#include "llvm/Support/raw_ostream.h"
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
  TrainLog log;

  bool isRoot() const { return communicator.rank() == 0; }
  llvm::Expected<StepReport> step(int64_t step);
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
                                       std::move(evaluation), data.order, {}})));
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

/// One update; `step` counts from 0.
llvm::Expected<StepReport> Trainer::State::step(int64_t step) {
  const TrainOptions &options = data.options;
  Clock::time_point start = Clock::now();
  StepReport report;
  report.step = step + 1;
  report.learningRate = data.schedule.at(step);
  double *scalars = executor.scalars();
  fillScalars(scalars, options.numbers, report.learningRate, step, /*firstUpdate=*/step == 0);

  int64_t micro = 0;
  for (int program : train.microSteps) {
    fillShardIndex(scalars, micro, communicator.size(), communicator.rank());
    if (llvm::Error error = inputs.feed(order.rows(step, communicator.rank(), micro++)))
      return error;
    if (llvm::Error error = executor.run(program))
      return error;
  }
  auto trained = train.last.read();
  if (!trained)
    return trained.takeError();
  const double sum = trained->lossSum, count = trained->lossCount;
  report.loss = count > 0 ? sum / count : 0; // all targets ignored: no loss, no gradient
  if (options.stopOnNan && !std::isfinite(report.loss))
    return userError("step " + llvm::Twine(step + 1) + ": loss is not finite: got " +
                         (std::isnan(report.loss) ? "nan" : "inf") + ", wanted a number",
                     "lower --learning-rate or --max-grad-norm, or add warm-up; the weights were "
                     "not updated by this step");
  if (step == 0 && !options.dumpGradients.empty())
    if (llvm::Error error = saveGradients(data.plan, executor, communicator, options.dumpGradients,
                                          count > 0 ? 1 / count : 0))
      return error;
  if (llvm::Error error = executor.run(update.index))
    return error;
  auto updated = update.read();
  if (!updated)
    return updated.takeError();
  report.gradNorm = updated->gradNorm;
  double seconds = secondsSince(start);
  report.milliseconds = seconds * 1e3;
  report.samplesPerSecond = double(order.rowsPerStep()) / std::max(seconds, 1e-9);
  return report;
}

llvm::Error Trainer::State::evaluate(const TrainHooks &hooks, TrainResults &results) {
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
    auto report = step(results.steps);
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
