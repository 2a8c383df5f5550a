// SPDX-License-Identifier: Apache-2.0
// shardc: an ONNX model becomes a training plan.
#include "ir/base/File.h"
#include "ir/base/Hint.h"
#include "ir/graph/Text.h"
#include "ir/plan/Report.h"
#include "tools/common/CommandLine.h"
#include "tools/common/Report.h"
#include "tools/compile/Budgeting.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace shardc;

namespace {

/// Writes what `--emit` says to -o (IR and text: to stdout where there is no -o).
Error writeText(StringRef output, function_ref<void(raw_ostream &)> print) {
  if (output.empty()) {
    print(outs());
    return Error::success();
  }
  return writeFileAtomically(output, [&](raw_ostream &os) {
    print(os);
    return Error::success();
  });
}

Error run(int argc, char **argv) {
  auto flags = readFlags(argc, argv);
  if (!flags)
    return flags.takeError();
  auto compiler = Compiler::open(*flags);
  if (!compiler)
    return compiler.takeError();
  if (flags->estimate)
    return printEstimates(**compiler, *flags, outs());

  auto result = compileWithinBudget(**compiler, *flags);
  if (!result)
    return result.takeError();
  if (!result->plan || flags->emit == "ir")
    return writeText(flags->output, [&](raw_ostream &os) { printGraph(*result->step, os); });
  if (flags->emit == "plan-text")
    return writeText(flags->output, [&](raw_ostream &os) { printPlan(*result->plan, os); });
  if (Error error = writePlan(*result->plan, flags->output))
    return error;
  raw_ostream &os = flags->output == "-" ? notes() : outs();
  printScreen(*result->plan, os);
  printBudget(*result, *flags, os);
  os << "\nnext: shardc-train " << flags->output
         << " --data FILE.safetensors --max-steps 100 --output-dir out\n";
  return Error::success();
}

} // namespace

int main(int argc, char **argv) { return reportAndExitCode(withHint(run(argc, argv), "see shardc --help")); }
