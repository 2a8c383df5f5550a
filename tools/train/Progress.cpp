// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Progress.h"
#include "tools/common/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <unistd.h>

namespace shardc {

using Clock = std::chrono::steady_clock;

Progress::Progress() : isTerminal_(::isatty(2)), start_(Clock::now()), shown_(start_) {}

static std::string formatTime(double seconds) {
  char text[48];
  long s = long(seconds + 0.5);
  if (s < 3600)
    snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  else
    snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  return text;
}

void Progress::step(const StepReport &report, int64_t totalSteps) {
  if (isQuiet())
    return;
  Clock::time_point now = Clock::now();
  bool last = report.step == totalSteps, first = report.step == 1;
  if (isTerminal_) {
    if (!first && !last && now - shown_ < std::chrono::milliseconds(100))
      return;
  } else if (int64_t every = (totalSteps + 19) / 20; !first && !last && report.step % every != 0) {
    return;
  }
  shown_ = now;
  double seconds = std::chrono::duration<double>(now - start_).count();
  double left = seconds / double(report.step) * double(totalSteps - report.step);
  char line[256], rates[96] = "";
  if (report.tokensPerSecond > 0)
    snprintf(rates, sizeof rates, "  %.0f tokens/s", report.tokensPerSecond);
  if (report.mfu > 0)
    snprintf(rates + std::strlen(rates), sizeof rates - std::strlen(rates), "  MFU %.1f %%", 100 * report.mfu);
  if (report.skipped)
    snprintf(rates + std::strlen(rates), sizeof rates - std::strlen(rates), "  overflow: skipped");
  snprintf(line, sizeof line,
           "step %lld/%lld %3d%%  loss %.4f  lr %.2e  norm %.3g  %.1f samples/s%s  %s left",
           (long long)report.step, (long long)totalSteps, int(100 * report.step / totalSteps),
           report.loss, report.learningRate, report.gradNorm, report.samplesPerSecond, rates,
           formatTime(left).c_str());
  if (isTerminal_)
    llvm::errs() << '\r' << line << "\x1b[K";
  else
    llvm::errs() << line << '\n';
  open_ = isTerminal_;
}

void Progress::eval(int64_t step, const EvalReport &report) {
  finish();
  llvm::raw_ostream &os = notes();
  os << "step " << step << " eval  loss " << llvm::format("%.4f", report.loss);
  if (report.accuracy)
    os << "  accuracy " << llvm::format("%.4f", *report.accuracy);
  os << "  " << report.samples << " samples in " << llvm::format("%.1f", report.seconds) << " s\n";
}

void Progress::finish() {
  if (open_)
    llvm::errs() << '\n';
  open_ = false;
}

} // namespace shardc
