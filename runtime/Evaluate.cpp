// SPDX-License-Identifier: Apache-2.0
#include "runtime/Evaluate.h"
#include "ir/base/Error.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include <chrono>
#include <numeric>

namespace shardc {

llvm::Expected<EvalRows> EvalRows::of(const plan::Plan &plan, const Dataset &data) {
  if (!findProgram(plan, "eval"))
    return userError("plan: has no program \"eval\"");
  int64_t batch = plan.batch(), rows = data.rows(), least = canPad(plan) ? 1 : batch;
  if (rows < least)
    return userError(data.name() + ": too few rows: got " + llvm::Twine(rows) + ", wanted at least " +
                     llvm::Twine(least));
  int64_t rest = canPad(plan) ? 0 : rows % batch;
  if (rest == 0)
    return EvalRows{rows, ""};
  return EvalRows{rows - rest, std::to_string(rest) + " of " + std::to_string(rows) +
                                   " evaluation rows do not fill a batch and are left out"};
}

Evaluation::Evaluation(const plan::Plan &plan, Executor &executor, Communicator &communicator, const Dataset &data,
                       StepProgram program, int64_t rows)
    : executor_(&executor), communicator_(&communicator), program_(program), inputs_(plan, executor, data),
      batch_(plan.batch()), rows_(rows), batchRows_(std::min(batch_, rows_)) {}

llvm::Expected<Evaluation> Evaluation::create(const plan::Plan &plan, Executor &executor, Communicator &communicator,
                                              const Dataset &data) {
  auto rows = EvalRows::of(plan, data);
  if (!rows)
    return rows.takeError();
  auto program = StepProgram::find(plan, executor, "eval");
  if (!program)
    return program.takeError();
  if (!program->lossSum || !program->lossCount)
    return userError("plan: program \"eval\" leaves no loss");
  return Evaluation(plan, executor, communicator, data, *program, rows->count);
}

llvm::Error Evaluation::feed(int64_t batch) {
  int64_t first = batch * batch_, n = std::min(batch_, rows_ - first);
  std::iota(batchRows_.begin(), batchRows_.begin() + n, first);
  llvm::ArrayRef<int64_t> rows(batchRows_.data(), n);
  return n == batch_ ? inputs_.feed(rows) : inputs_.feedPadded(rows);
}

llvm::Expected<EvalReport> Evaluation::run() {
  auto start = std::chrono::steady_clock::now();
  const int64_t ranks = communicator_->size(), batches = (rows_ + batch_ - 1) / batch_;
  double totals[3] = {}; // loss, count, correct
  for (int64_t first = 0; first < batches; first += ranks) {
    int64_t batch = first + communicator_->rank();
    bool isOver = batch >= batches; // others still have one
    if (llvm::Error error = feed(isOver ? 0 : batch))
      return error;
    if (llvm::Error error = executor_->start(program_.index))
      return error;
    if (llvm::Error error = program_.fetch())
      return error;
    if (llvm::Error error = executor_->finish())
      return error;
    if (isOver)
      continue;
    StepResults results = program_.results();
    totals[0] += results.lossSum;
    totals[1] += results.lossCount;
    totals[2] += results.correct;
  }
  if (!communicator_->allReduce(/*channel=*/0, totals, 3, DType::F64))
    return groupError(*communicator_);
  auto [sum, count, correct] = totals;
  EvalReport report;
  report.samples = rows_;
  report.loss = count > 0 ? sum / count : 0;
  if (program_.correct)
    report.accuracy = count > 0 ? correct / count : 0;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

} // namespace shardc
