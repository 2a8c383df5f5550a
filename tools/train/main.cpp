// SPDX-License-Identifier: Apache-2.0
// shardc-train: trains a model by its plan.
#include "ir/base/Error.h"
#include "ir/base/Hint.h"
#include "tools/common/Report.h"
#include "tools/train/Calibration.h"
#include "tools/train/Job.h"
#include "tools/train/Spawn.h"
#include "tools/train/Threads.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdlib>

namespace shardc {
namespace {

std::atomic<bool> stopRequested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void requestStop(int) { stopRequested = true; }

/// The first Ctrl-C asks for a stop after the step; a second one ends at once. Pipes that close are
/// errors of the write, never a signal.
void installSignals() {
  struct sigaction stop = {};
  stop.sa_handler = requestStop;
  stop.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &stop, nullptr);
  sigaction(SIGTERM, &stop, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  admitSignals();
}

void printResults(const TrainResults &results) {
  llvm::raw_ostream &os = llvm::outs();
  os << "trained " << results.steps << " steps, " << llvm::format("%.2f", results.epoch)
     << " epochs in " << llvm::format("%.1f", results.seconds) << " s, "
     << llvm::format("%.1f", double(results.samples) / std::max(results.seconds, 1e-9))
     << " samples/s\n";
  os << "train_loss " << llvm::format("%.6f", results.loss) << '\n';
  if (results.eval) {
    os << "eval_loss " << llvm::format("%.6f", results.eval->loss) << '\n';
    if (results.eval->accuracy)
      os << "eval_accuracy " << llvm::format("%.6f", *results.eval->accuracy) << '\n';
  }
}

int run(int argc, char **argv) {
  auto flags = parseFlags(argc, argv);
  if (!flags)
    return reportAndExitCode(flags.takeError());
  installSignals();
  auto results = flags->calibrate.empty() ? runJob(*flags, stopRequested) : runCalibration(*flags);
  if (!results) {
    int code = reportAndExitCode(withHint(results.takeError(), "see shardc-train --help"));
    if (code == int(Exit::Fault)) // a device that waits for a rank that is gone would keep us from ending in good order
      std::_Exit(code);
    return code;
  }
  if (results->exitCode)
    return *results->exitCode;
  if (results->isRoot)
    printResults(results->train);
  int code = reportAndExitCode(llvm::Error::success());
  return code == 0 && results->train.interrupted ? int(Exit::Interrupted) : code;
}

} // namespace
} // namespace shardc

int main(int argc, char **argv) {
  shardc::shortenSpinning(argv);
  return shardc::run(argc, argv);
}
