// SPDX-License-Identifier: Apache-2.0
#include "runtime/Evaluate.h"
#include "ir/base/Error.h"
#include <chrono>
#include <numeric>

namespace shardc {

Evaluation::Evaluation(Executor &executor, StepProgram program, Inputs inputs, int64_t batch)
    : executor_(&executor), program_(program), inputs_(std::move(inputs)), batch_(batch),
      rows_(inputs_.data().rows()), batchRows_(std::min(batch, rows_)) {
  if (int64_t rest = rows_ % batch_; rest != 0 && !inputs_.canPad()) {
    note_ = std::to_string(rest) + " of " + std::to_string(rows_) +
            " evaluation rows do not fill a batch and are left out";
    rows_ -= rest;
  }
}

llvm::Expected<Evaluation> Evaluation::open(const plan::Plan &plan, Executor &executor,
                                            llvm::ArrayRef<std::string> files) {
  auto program = StepProgram::find(plan, executor, "eval");
  if (!program)
    return program.takeError();
  if (!program->lossSum || !program->lossCount)
    return userError("plan: program \"eval\" leaves no loss");
  auto inputs = Inputs::open(plan, executor, files);
  if (!inputs)
    return inputs.takeError();
  int64_t batch = plan.batch(), least = inputs->canPad() ? 1 : batch;
  if (inputs->data().rows() < least)
    return userError(inputs->data().name() + ": too few rows: got " +
                     llvm::Twine(inputs->data().rows()) + ", wanted at least " +
                     llvm::Twine(least));
  return Evaluation(executor, *program, std::move(*inputs), batch);
}

llvm::Expected<EvalReport> Evaluation::run() {
  auto start = std::chrono::steady_clock::now();
  double sum = 0, count = 0, correct = 0;
  for (int64_t row = 0; row < rows_; row += batch_) {
    int64_t n = std::min(batch_, rows_ - row);
    std::iota(batchRows_.begin(), batchRows_.begin() + n, row);
    llvm::ArrayRef<int64_t> rows(batchRows_.data(), n);
    n == batch_ ? inputs_.feed(rows) : inputs_.feedPadded(rows);
    if (llvm::Error error = executor_->run(program_.index))
      return error;
    sum += program_.lossSum.read();
    count += program_.lossCount.read();
    correct += program_.correct ? program_.correct.read() : 0;
  }
  EvalReport report;
  report.samples = rows_;
  report.loss = count > 0 ? sum / count : 0;
  if (program_.correct)
    report.accuracy = count > 0 ? correct / count : 0;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

} // namespace shardc
