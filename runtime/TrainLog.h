// SPDX-License-Identifier: Apache-2.0
// The files that a run leaves in its output folder: log.jsonl and train_results.json.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace shardc {

/// One update, as it is shown and logged.
struct StepReport {
  int64_t step = 0;        ///< from 1
  double loss = 0;         ///< mean over all counted targets of the update
  double learningRate = 0; ///< as used
  double gradNorm = 0;     ///< of the averaged gradient, before clipping
  std::optional<double> lossScale; ///< fp16: that of this step
  bool skipped = false;    ///< fp16: gradients overflowed, nothing was updated
  double milliseconds = 0;
  double samplesPerSecond = 0;
  double tokensPerSecond = 0; ///< 0: the model has none
  double mfu = 0;             ///< operations of the plan to those of the device at its best, 0 to 1; 0: not known
};

struct EvalReport {
  double loss = 0;
  std::optional<double> accuracy; ///< none: the loss has no classes
  int64_t samples = 0;
  double seconds = 0;
};

struct TrainResults {
  int64_t steps = 0, totalSteps = 0, samples = 0;
  double epoch = 0, loss = 0, seconds = 0; ///< loss: mean over the updates
  std::optional<EvalReport> eval;          ///< the last one
  bool interrupted = false;
};

/// Lines are written at once, without buffering or allocation, and whole or not at all. A number that is not finite is
/// written as null.
class TrainLog {
public:
  TrainLog() = default;
  ~TrainLog();
  TrainLog(const TrainLog &) = delete;

  /// Makes the folder if it is missing, empties log.jsonl. Fails if `reserve` bytes more would not
  /// fit on the disk.
  llvm::Error open(llvm::StringRef folder, uint64_t reserve);
  /// Both do nothing before `open`. Errors have exit code 4: training stops.
  llvm::Error write(const StepReport &report);
  llvm::Error write(int64_t step, const EvalReport &report);

private:
  llvm::Error writeLine(const char *text, size_t size);

  std::string path_;
  int fd_ = -1;
};

/// In the Trainer's names: train_loss, train_runtime, ... eval_loss, eval_accuracy, ...
std::string formatResults(const TrainResults &results);

/// Fails if `path` could not be written: its folder must be there and writable, with `bytes` free.
llvm::Error checkWritable(llvm::StringRef path, uint64_t bytes);

} // namespace shardc
