// SPDX-License-Identifier: Apache-2.0
// shardc-train: trains a model by its plan.
#include "ir/base/Error.h"
#include "ir/base/Hint.h"
#include "runtime/Trainer.h"
#include "tools/common/CommandLine.h"
#include "tools/common/Report.h"
#include "tools/train/Flags.h"
#include "tools/train/Progress.h"
#include "tools/train/Threads.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>

namespace shardc {
namespace {

volatile std::sig_atomic_t stopRequested = 0;

void requestStop(int) { stopRequested = 1; }

/// The first Ctrl-C asks for a stop after the step; a second one ends at once. Pipes that close and
/// files that grow too large are errors of the write, never a signal.
void installSignals() {
  struct sigaction stop = {};
  stop.sa_handler = requestStop;
  stop.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &stop, nullptr);
  sigaction(SIGTERM, &stop, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
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

void noteInitialised(llvm::ArrayRef<std::string> names) {
  if (!names.empty())
    notes() << "initialised " << names.size() << " parameters (--init-weights)\n";
  for (const std::string &name : names)
    details() << "  " << name << '\n';
}

llvm::Expected<TrainResults> train(const TrainFlags &flags) {
  if (llvm::Error error = checkLauncher())
    return error;
  auto plan = readPlan(flags.planPath);
  if (!plan)
    return plan.takeError();
  if (llvm::Error error = checkFlags(*plan))
    return error;
  auto executor = Executor::create(*plan);
  if (!executor)
    return executor.takeError();
  auto trainer = Trainer::create(*plan, **executor, flags.train);
  if (!trainer)
    return trainer.takeError();
  auto initialised = loadWeights(*plan, **executor, flags.weights);
  if (!initialised)
    return initialised.takeError();
  noteInitialised(*initialised);
  if (llvm::Error error = (*trainer)->openOutputs())
    return error;
  for (const std::string &note : (*trainer)->notes())
    notes() << note << '\n';

  Progress progress;
  auto onStep = [&](const StepReport &report, int64_t total) { progress.step(report, total); };
  auto onEval = [&](int64_t step, const EvalReport &report) { progress.eval(step, report); };
  auto results = (*trainer)->run({onStep, onEval, &stopRequested});
  progress.finish();
  if (!results)
    return results.takeError();
  if (results->interrupted)
    notes() << "interrupted after step " << results->steps << " of " << results->totalSteps << '\n';
  if (std::vector<std::string> files = (*trainer)->weightFiles(); !files.empty())
    notes() << "weights are in " << llvm::join(files, " and ") << '\n';
  return results;
}

int run(int argc, char **argv) {
  auto flags = parseFlags(argc, argv);
  if (!flags)
    return reportAndExitCode(flags.takeError());
  installSignals();
  auto results = train(*flags);
  if (!results)
    return reportAndExitCode(withHint(results.takeError(), "see shardc-train --help"));
  printResults(*results);
  int code = reportAndExitCode(llvm::Error::success());
  return code == 0 && results->interrupted ? int(Exit::Interrupted) : code;
}

} // namespace
} // namespace shardc

int main(int argc, char **argv) {
  shardc::shortenSpinning(argv);
  return shardc::run(argc, argv);
}
