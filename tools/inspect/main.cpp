// SPDX-License-Identifier: Apache-2.0
// shardc-inspect: what is in a plan.
#include "ir/base/Error.h"
#include "ir/base/Hint.h"
#include "ir/plan/Plan.h"
#include "ir/plan/Report.h"
#include "tools/common/CommandLine.h"
#include "tools/common/Report.h"
#include "tools/inspect/Files.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

cl::OptionCategory
    category("What to print (default: everything on one page; of several plans: a table)");
cl::list<std::string> files(cl::Positional, cl::OneOrMore, cl::desc("FILE.plan..."),
                            cl::cat(category));
cl::opt<bool> json("json", cl::desc("all of it as JSON, with stable keys"), cl::cat(category));
cl::opt<bool> text("text", cl::desc("the plan's text form, complete"), cl::cat(category));
cl::opt<bool> commands("commands", cl::desc("a line for each command, in order"),
                       cl::cat(category));
cl::opt<bool> buffers("buffers", cl::desc("a line for each buffer, largest first"),
                      cl::cat(category));
cl::opt<bool> peak("peak", cl::desc("what lives at the peak, and what would lower it"),
                   cl::cat(category));
cl::opt<std::string>
    mapPath("map",
            cl::desc("draw the memory, address over time: a picture, or a page to look around in"),
            cl::value_desc("FILE.svg|FILE.html"), cl::cat(category));
cl::opt<std::string> csvPath("csv",
                             cl::desc("write lifetimes, sizes and offsets as MiniMalloc does"),
                             cl::value_desc("FILE"), cl::cat(category));
cl::opt<bool> check("check", cl::desc("say whether the plan is sound: exit code 0 only if it is"),
                    cl::cat(category));

Error run() {
  if (json + text + commands + buffers + peak + check > 1)
    return shardc::userError("command line: more than one of --json --text --commands --buffers "
                             "--peak --check: wanted at most one",
                             "see shardc-inspect --help");
  // Reading judges a plan; what gets past it is sound.
  std::vector<shardc::plan::Plan> plans;
  for (const std::string &file : files) {
    Expected<shardc::plan::Plan> plan = shardc::readPlan(file);
    if (!plan)
      return plan.takeError();
    plans.push_back(std::move(*plan));
  }
  raw_ostream &os = outs();
  if (check) {
    for (const std::string &file : files)
      os << file << ": sound\n";
    return Error::success();
  }
  if (plans.size() > 1) {
    if (json + text + commands + buffers + peak + !mapPath.empty() + !csvPath.empty())
      return shardc::userError("command line: several plans are compared in one table: wanted no "
                               "--json --text --commands --buffers --peak --map --csv",
                               "give one plan");
    shardc::printComparison(plans, files, os);
    return Error::success();
  }
  const shardc::plan::Plan &plan = plans.front();
  // Files are written beside whatever is printed; asked for alone, they are all.
  if (!mapPath.empty())
    if (Error error = shardc::writeMap(plan, mapPath))
      return error;
  if (!csvPath.empty())
    if (Error error = shardc::writeCsv(plan, csvPath))
      return error;
  bool onlyFiles = !mapPath.empty() || !csvPath.empty();
  if (json)
    shardc::printJson(plan, os);
  else if (text)
    shardc::printPlan(plan, os);
  else if (commands)
    shardc::printCommands(plan, os);
  else if (buffers)
    shardc::printBuffers(plan, os);
  else if (peak)
    shardc::printPeak(plan, os);
  else if (!onlyFiles) {
    shardc::printScreen(plan, os);
    shardc::printDetails(plan, os);
    os << '\n';
    shardc::printPeak(plan, os);
  }
  return Error::success();
}

} // namespace

int main(int argc, char **argv) {
  cl::OptionCategory *categories[] = {&category};
  shardc::parseCommandLine(argc, argv,
                           {.overview = "shardc-inspect: what is in a training plan",
                            .examples = "shardc-inspect t5.plan\n"
                                        "shardc-inspect t5.plan --peak\n"
                                        "shardc-inspect t5.plan --map t5.html\n"
                                        "shardc-inspect stage0.plan stage1.plan stage3.plan\n"
                                        "shardc-inspect t5.plan --json | python3 -m json.tool",
                            .categories = categories});
  return shardc::reportAndExitCode(shardc::withHint(run(), "see shardc-inspect --help"));
}
