// SPDX-License-Identifier: Apache-2.0
#include "runtime/TrainData.h"
#include "ir/base/Error.h"
#include "runtime/Evaluate.h"
#include "runtime/Inputs.h"

namespace shardc {

llvm::Expected<std::unique_ptr<const TrainData>> TrainData::open(const plan::Plan &plan, const TrainOptions &options) {
  auto data = openData(plan, options.data);
  if (!data)
    return data.takeError();
  const int64_t rows = data->rows(), batch = plan.batch(), ranks = std::max<int64_t>(plan.ranks(), 1),
                accumulate = std::max<int64_t>(plan.accumulate(), 1);
  if (batch < 1 || rows / batch / ranks < accumulate)
    return userError(data->name() + ": too few rows: got " + llvm::Twine(rows) + ", wanted at least " +
                         llvm::Twine(batch * ranks * accumulate) + " (batch " + llvm::Twine(batch) + " x ranks " +
                         llvm::Twine(ranks) + " x accumulate " + llvm::Twine(accumulate) + ")",
                     "add rows, or compile the plan for a smaller batch");

  BatchOrder order(rows, batch, ranks, accumulate, options.shuffle, options.numbers.seed);
  Schedule schedule{options.schedule, options.learningRate, 0, 0};
  schedule.totalSteps = totalSteps(options.maxSteps, options.epochs, order.stepsPerEpoch());
  schedule.warmupSteps = warmupSteps(options.warmupSteps, options.warmupRatio, schedule.totalSteps);

  std::vector<std::string> notes;
  if (int64_t rest = rows % order.rowsPerStep())
    notes.push_back(std::to_string(rest) + " of " + std::to_string(rows) +
                    " rows do not fill a batch and are left out in each epoch");
  std::optional<Dataset> evalData;
  if (!options.evalData.empty()) {
    auto opened = openData(plan, options.evalData);
    if (!opened)
      return opened.takeError();
    auto evaluated = EvalRows::of(plan, *opened);
    if (!evaluated)
      return evaluated.takeError();
    if (!evaluated->note.empty())
      notes.push_back(evaluated->note);
    evalData.emplace(std::move(*opened));
  }
  return std::unique_ptr<const TrainData>(new TrainData{plan, options, std::move(*data), std::move(evalData),
                                                        std::move(order), schedule, std::move(notes)});
}

} // namespace shardc
