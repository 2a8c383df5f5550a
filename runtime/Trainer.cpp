// SPDX-License-Identifier: Apache-2.0
#include "runtime/Trainer.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "runtime/Evaluate.h"
#include "runtime/Inputs.h"
#include "runtime/StepPrograms.h"
#include "runtime/Weights.h"
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
llvm::Error asFault(llvm::Error error) {
  return llvm::handleErrors(std::move(error), [](const UserError &mistake) {
    return userError(mistake.text(), mistake.hint(), Exit::Fault);
  });
}

} // namespace

struct Trainer::State {
  const plan::Plan &plan;
  Executor &executor;
  TrainOptions options;
  StepProgram train, update;
  Inputs inputs;
  std::optional<Evaluation> evaluation;
  BatchOrder order;
  Schedule schedule;
  TrainLog log;
  std::vector<std::string> notes;

  llvm::Expected<StepReport> step(int64_t step);
};

llvm::Expected<std::unique_ptr<Trainer>> Trainer::create(const plan::Plan &plan, Executor &executor,
                                                         const TrainOptions &options) {
  assert(plan.ranks() == 1 && "one rank");
  auto train = StepProgram::find(plan, executor, "train");
  if (!train)
    return train.takeError();
  auto update = StepProgram::find(plan, executor, "update");
  if (!update)
    return update.takeError();
  if (!train->lossSum || !train->lossCount)
    return userError("plan: program \"train\" leaves no loss");
  auto inputs = Inputs::open(plan, executor, options.data);
  if (!inputs)
    return inputs.takeError();

  int64_t batch = plan.batch(), accumulate = std::max<int64_t>(plan.accumulate(), 1);
  int64_t rows = inputs->data().rows();
  if (batch < 1 || rows / batch < accumulate)
    return userError(inputs->data().name() + ": too few rows: got " + llvm::Twine(rows) +
                         ", wanted at least " + llvm::Twine(batch * accumulate) + " (batch " +
                         llvm::Twine(batch) + " x ranks 1 x accumulate " + llvm::Twine(accumulate) +
                         ")",
                     "add rows, or compile the plan for a smaller batch");

  BatchOrder order(rows, batch, /*ranks=*/1, accumulate, options.shuffle, options.numbers.seed);
  Schedule schedule{options.schedule, options.learningRate, 0, 0};
  schedule.totalSteps = shardc::totalSteps(options.maxSteps, options.epochs, order.stepsPerEpoch());
  schedule.warmupSteps =
      shardc::warmupSteps(options.warmupSteps, options.warmupRatio, schedule.totalSteps);

  std::optional<Evaluation> evaluation;
  if (!options.evalData.empty()) {
    auto opened = Evaluation::open(plan, executor, options.evalData);
    if (!opened)
      return opened.takeError();
    evaluation.emplace(std::move(*opened));
  }
  auto state = std::unique_ptr<State>(new State{plan,
                                                executor,
                                                options,
                                                *train,
                                                *update,
                                                std::move(*inputs),
                                                std::move(evaluation),
                                                std::move(order),
                                                schedule,
                                                {},
                                                {}});
  if (int64_t rest = rows % state->order.rowsPerStep())
    state->notes.push_back(std::to_string(rest) + " of " + std::to_string(rows) +
                           " rows do not fill a batch and are left out in each epoch");
  if (state->evaluation && !state->evaluation->note().empty())
    state->notes.push_back(state->evaluation->note());
  return std::unique_ptr<Trainer>(new Trainer(std::move(state)));
}

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::~Trainer() = default;

int64_t Trainer::totalSteps() const { return state_->schedule.totalSteps; }
llvm::ArrayRef<std::string> Trainer::notes() const { return state_->notes; }

std::vector<std::string> Trainer::weightFiles() const {
  std::vector<std::string> files;
  if (!state_->options.outputDir.empty())
    files.push_back(state_->options.outputDir + "/model.safetensors");
  if (!state_->options.saveWeights.empty())
    files.push_back(state_->options.saveWeights);
  return files;
}

llvm::Error Trainer::openOutputs() {
  const TrainOptions &options = state_->options;
  uint64_t bytes = safetensorsSize(parameterArrays(state_->plan, state_->executor));
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
  Clock::time_point start = Clock::now();
  StepReport report;
  report.step = step + 1;
  report.learningRate = schedule.at(step);
  double *scalars = executor.scalars();
  fillScalars(scalars, options.numbers, report.learningRate, step, /*firstUpdate=*/step == 0);

  double sum = 0, count = 0;
  for (int64_t micro = 0; micro < std::max<int64_t>(plan.accumulate(), 1); ++micro) {
    fillShardIndex(scalars, micro, /*ranks=*/1, /*rank=*/0);
    inputs.feed(order.rows(step, /*rank=*/0, micro));
    if (llvm::Error error = executor.run(train.index))
      return error;
    sum += train.lossSum.read();
    count += train.lossCount.read();
  }
  report.loss = count > 0 ? sum / count : 0; // all targets ignored: no loss, no gradient
  if (options.stopOnNan && !std::isfinite(report.loss))
    return userError("step " + llvm::Twine(step + 1) + ": loss is not finite: got " +
                         (std::isnan(report.loss) ? "nan" : "inf") + ", wanted a number",
                     "lower --learning-rate or --max-grad-norm, or add warm-up; the weights were "
                     "not updated by this step");
  if (step == 0 && !options.dumpGradients.empty()) {
    double scale = count > 0 ? 1 / count : 0;
    if (llvm::Error error =
            writeSafetensors(options.dumpGradients, gradientArrays(plan, executor, scale)))
      return error;
  }
  if (llvm::Error error = executor.run(update.index))
    return error;
  report.gradNorm = update.gradNorm ? update.gradNorm.read() : 0;
  double seconds = secondsSince(start);
  report.milliseconds = seconds * 1e3;
  report.samplesPerSecond = double(order.rowsPerStep()) / std::max(seconds, 1e-9);
  return report;
}

llvm::Error Trainer::finish(const TrainResults &results) {
  std::vector<ArrayToWrite> parameters = parameterArrays(state_->plan, state_->executor);
  for (const std::string &file : weightFiles())
    if (llvm::Error error = writeSafetensors(file, parameters))
      return error;
  if (state_->options.outputDir.empty())
    return llvm::Error::success();
  return writeFileAtomically(state_->options.outputDir + "/train_results.json",
                             [&](llvm::raw_ostream &os) {
                               os << formatResults(results);
                               return llvm::Error::success();
                             });
}

llvm::Expected<TrainResults> Trainer::run(const TrainHooks &hooks) {
  State &state = *state_;
  TrainResults results;
  results.totalSteps = totalSteps();
  double lossSum = 0;
  auto evaluate = [&]() -> llvm::Error {
    auto report = state.evaluation->run();
    if (!report)
      return report.takeError();
    results.eval = *report;
    if (hooks.onEval)
      hooks.onEval(results.steps, *report);
    return state.log.write(results.steps, *report);
  };
  auto stopped = [&] { return hooks.stop && *hooks.stop; };

  Clock::time_point start = Clock::now();
  while (results.steps < results.totalSteps && !stopped()) {
    auto report = state.step(results.steps);
    if (!report)
      return asFault(report.takeError());
    ++results.steps;
    lossSum += report->loss;
    if (llvm::Error error = state.log.write(*report))
      return asFault(std::move(error));
    if (hooks.onStep)
      hooks.onStep(*report, results.totalSteps);
    bool due = state.evaluation && state.options.evalSteps > 0 &&
               results.steps % state.options.evalSteps == 0;
    if (due && results.steps < results.totalSteps && !stopped())
      if (llvm::Error error = evaluate())
        return asFault(std::move(error));
  }
  results.interrupted = results.steps < results.totalSteps;
  results.seconds = secondsSince(start);
  results.samples = results.steps * state.order.rowsPerStep();
  results.epoch = double(results.steps) / double(state.order.stepsPerEpoch());
  results.loss = results.steps ? lossSum / double(results.steps) : 0;
  if (state.evaluation && !results.interrupted)
    if (llvm::Error error = evaluate())
      return asFault(std::move(error));
  if (llvm::Error error = finish(results))
    return asFault(std::move(error));
  return results;
}

} // namespace shardc
