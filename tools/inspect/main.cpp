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
#include <memory>

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
cl::opt<std::string> why("why", cl::value_desc("NAME"),
                         cl::desc("the life of one tensor: a parameter, or a buffer by name or number; or what a layer has"),
                         cl::cat(category));
cl::opt<std::string> diff("diff", cl::value_desc("OTHER.plan"),
                          cl::desc("what is different in the other plan: bytes by kind and layer, buffers that "
                                   "came and went"),
                          cl::cat(category));
cl::opt<bool> check("check", cl::desc("say whether the plan is sound: exit code 0 only if it is"),
                    cl::cat(category));

cl::OptionCategory written("Files to write, beside what is printed (asked for alone, they are all)");
cl::list<std::string> mapPaths("map", cl::value_desc("FILE.svg|FILE.html"),
                             cl::desc("draw the memory, address over time: a picture, or a page to look around in"),
                             cl::cat(written));
cl::list<std::string> csvPaths("csv", cl::value_desc("FILE"),
                             cl::desc("lifetimes, sizes and offsets as MiniMalloc does"), cl::cat(written));
cl::list<std::string> memoryVizPaths("memory-viz", cl::value_desc("FILE.pickle"),
                                   cl::desc("memory over the step, for pytorch.org/memory_viz"), cl::cat(written));
cl::list<std::string> tracePaths("trace", cl::value_desc("FILE.json"),
                               cl::desc("the predicted step as a timeline, for ui.perfetto.dev"), cl::cat(written));

const struct {
  const cl::list<std::string> &paths;
  Error (*write)(const shardc::plan::Plan &, StringRef path);
} kFiles[] = {{mapPaths, shardc::writeMap},
              {csvPaths, shardc::writeCsv},
              {memoryVizPaths, shardc::writeMemoryViz},
              {tracePaths, shardc::writeTrace}};

/// Those of the flags that are on the command line: "--json --peak".
std::string given(std::initializer_list<const cl::Option *> flags) {
  std::string list;
  for (const cl::Option *flag : flags)
    if (flag->getNumOccurrences())
      list += ((list.empty() ? "--" : " --") + flag->ArgStr).str();
  return list;
}

Error writeFiles(const shardc::plan::Plan &plan) {
  for (auto &file : kFiles)
    for (const std::string &path : file.paths)
      if (Error error = file.write(plan, path))
        return error;
  return Error::success();
}

Error run() {
  const std::string prints = given({&json, &text, &commands, &buffers, &peak, &why, &diff, &check});
  const std::string writes = given({std::addressof(mapPaths), std::addressof(csvPaths), std::addressof(memoryVizPaths),
                                    std::addressof(tracePaths)}); // lists have a & of their own
  if (StringRef(prints).contains(' '))
    return shardc::userError("command line: got " + prints + ", wanted one of them", "see shardc-inspect --help");
  // Reading judges a plan; what gets past it is sound.
  std::vector<shardc::plan::Plan> plans;
  for (const std::string &file : files) {
    Expected<shardc::plan::Plan> plan = shardc::readPlan(file);
    if (!plan)
      return plan.takeError();
    plans.push_back(std::move(*plan));
  }
  raw_ostream &os = outs();
  if (const std::string more = check ? writes : prints + writes; plans.size() > 1 && !more.empty())
    return shardc::userError("command line: several plans are compared in one table: got " + Twine(plans.size()) + " plans and " +
                                 StringRef(more).split(' ').first + ", wanted one plan",
                             "see shardc-inspect --help");
  if (Error error = writeFiles(plans.front()))
    return error;
  if (check) {
    for (const std::string &file : files)
      os << file << ": sound\n";
    return Error::success();
  }
  if (plans.size() > 1) {
    shardc::printComparison(plans, files, os);
    return Error::success();
  }
  const shardc::plan::Plan &plan = plans.front();
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
  else if (why.getNumOccurrences())
    return shardc::printWhy(plan, why, os);
  else if (diff.getNumOccurrences()) {
    Expected<shardc::plan::Plan> other = shardc::readPlan(diff);
    if (!other)
      return other.takeError();
    shardc::printDiff(plan, *other, files.front(), diff, os);
  } else if (writes.empty()) {
    shardc::printScreen(plan, os);
    shardc::printDetails(plan, os);
    os << '\n';
    shardc::printPeak(plan, os);
  }
  return Error::success();
}

} // namespace

int main(int argc, char **argv) {
  cl::OptionCategory *categories[] = {&category, &written};
  shardc::parseCommandLine(argc, argv,
                           {.overview = "Shows what is in a training plan.",
                            .examples = "shardc-inspect t5.plan\n"
                                        "shardc-inspect t5.plan --peak\n"
                                        "shardc-inspect t5.plan --map t5.html\n"
                                        "shardc-inspect t5.plan --why shared.weight\n"
                                        "shardc-inspect stage2.plan --diff stage3.plan\n"
                                        "shardc-inspect t5.plan --memory-viz t5.pickle --trace t5.json\n"
                                        "shardc-inspect stage0.plan stage1.plan stage3.plan\n"
                                        "shardc-inspect t5.plan --json | python3 -m json.tool",
                            .categories = categories});
  return shardc::reportAndExitCode(shardc::withHint(run(), "see shardc-inspect --help"));
}
