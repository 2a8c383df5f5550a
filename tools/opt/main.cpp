// SPDX-License-Identifier: Apache-2.0
// shardc-opt: IR text (or an ONNX model), passes in the order given, IR text; or the packer alone.
#include "frontend/Importer.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "ir/base/Hint.h"
#include "ir/graph/Text.h"
#include "ir/graph/Verify.h"
#include "ir/ops/OpDef.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/Pipeline.h"
#include "tools/common/CommandLine.h"
#include "tools/flags/DebugFlags.h"
#include "tools/common/Report.h"
#include "tools/flags/Arguments.h"
#include "tools/opt/PackCsv.h"
#include "tools/opt/PassOptions.h"

using namespace llvm;
using namespace shardc;

namespace {

cl::OptionCategory category("Passes");
DebugFlags debugFlags;
cl::opt<std::string> inputPath(cl::Positional, cl::desc("[FILE.ir|MODEL.onnx]"), cl::init("-"));
cl::opt<std::string> outputPath("o", cl::desc("where the IR goes; default stdout"), cl::value_desc("FILE.ir"),
                                cl::init("-"), cl::cat(category));
cl::list<std::string> passNames("pass", cl::desc("run this pass; may be given often"),
                                cl::value_desc("NAME{option=value}"), cl::cat(category));
cl::opt<bool> listPasses("list-passes", cl::desc("print the names of all passes"), cl::cat(category));
cl::opt<bool> listOps("list-ops", cl::desc("print the names of all ops"), cl::cat(category));
cl::opt<bool> verifyOnly("verify-only", cl::desc("print nothing; exit 0 only if the IR is sound"), cl::cat(category));
cl::opt<std::string>
    packPath("pack",
             cl::desc("pack the buffers of this file, no IR; exit 3 if they do not fit into --capacity"),
             cl::value_desc("FILE.csv"), cl::cat(category));
cl::opt<Size> capacity("capacity", cl::desc("of --pack, in bytes; default: as low as possible"), cl::cat(category));
cl::list<std::string> dims("dim", cl::desc("bind dimensions of an ONNX model"), cl::value_desc("NAME=V"),
                           cl::cat(category));

Error runPack() {
  if (inputPath.getNumOccurrences() || !passNames.empty() || verifyOnly)
    return userError("--pack: reads no IR: got a graph or a pass, wanted --pack, --capacity and -o alone");
  std::optional<uint64_t> most;
  if (capacity.getNumOccurrences())
    most = uint64_t(capacity.bytes);
  return packCsv(packPath, most, outputPath.getNumOccurrences() ? StringRef(outputPath) : "");
}

constexpr uint64_t kMostBytes = uint64_t(1) << 30; ///< of IR, with its constants

Expected<std::unique_ptr<Graph>> load() {
  if (StringRef(inputPath).ends_with(".onnx")) {
    ImportOptions options;
    if (Error error = parseBindings("--dim", dims, options.dims))
      return error;
    auto model = OnnxModel::open(inputPath);
    if (!model)
      return model.takeError();
    return importOnnx(**model, options);
  }
  auto buffer = readFile(inputPath, kMostBytes);
  if (!buffer)
    return buffer.takeError();
  return parseGraph((*buffer)->getBuffer(), inputPath);
}

/// "set-dropout{dropout=0.1}"
Expected<Pass> findPass(StringRef text, CompileOptions &options) {
  auto [name, rest] = text.split('{');
  rest.consume_back("}");
  while (!rest.empty()) {
    auto [option, next] = rest.split(',');
    if (Error error = setPassOption(option, options))
      return error;
    rest = next;
  }
  for (const NamedPass &pass : allPasses())
    if (pass.name == name)
      return pass.pass;
  return userError("--pass: got '" + name + "', wanted the name of a pass", "shardc-opt --list-passes lists them");
}

Error run() {
  if (listPasses || listOps) {
    for (const NamedPass &pass : allPasses())
      if (listPasses)
        outs() << pass.name << "\n";
    for (const OpDef *op : allOps())
      if (listOps)
        outs() << op->mnemonic << "\n";
    return Error::success();
  }
  if (packPath.getNumOccurrences())
    return runPack();
  if (capacity.getNumOccurrences())
    return userError("--capacity: is of --pack: got no --pack, wanted --pack FILE.csv");
  auto graph = load();
  if (!graph)
    return graph.takeError();
  if (Error error = verify(**graph))
    return error;
  if (verifyOnly)
    return Error::success();
  CompileOptions options;
  DebugOptions debug = debugFlags.options();
  {
    PassRunner runner(**graph, options, debug);
    for (StringRef text : passNames) {
      auto pass = findPass(text, options);
      if (!pass)
        return pass.takeError();
      runner(text.split('{').first, *pass);
    }
    if (Error error = runner.take())
      return error;
  }
  return writeFileAtomically(outputPath, [&](raw_ostream &os) {
    printGraph(**graph, os);
    return Error::success();
  });
}

} // namespace

int main(int argc, char **argv) {
  parseCommandLine(argc, argv,
                   {"Runs passes on IR text.",
                    "shardc-opt graph.ir --pass=raise --pass=dce\n"
                    "shardc-opt model.onnx --dim batch=2,src=8,tgt=8 --pass=insert-gradients\n"
                    "shardc-opt --pack buffers.csv --capacity 1048576 -o packed.csv\n"
                    "shardc-opt --list-passes",
                    {&category, &debugFlags.category}});
  return reportAndExitCode(withHint(run(), "see shardc-opt --help"));
}
