// SPDX-License-Identifier: Apache-2.0
#include "tools/compile/Flags.h"
#include "ir/base/Error.h"
#include "tools/common/CommandLine.h"
#include "tools/flags/Arguments.h"
#include "tools/flags/DebugFlags.h"

using namespace llvm;

namespace shardc {
namespace {

cl::OptionCategory modelCategory("Model"), stepCategory("Training step"), planCategory("Sharding and memory"),
    outputCategory("Output");
DebugFlags debugFlags;

cl::opt<std::string> modelPath(cl::Positional, cl::desc("MODEL.onnx"), cl::Required);
cl::opt<std::string> outputPath("o", cl::desc("where the plan goes"), cl::value_desc("FILE.plan"),
                                cl::cat(outputCategory));
cl::opt<std::string> emit("emit", cl::desc("what to write; default plan"),
                          cl::value_desc("ir|plan|plan-text"), cl::init("plan"), cl::cat(outputCategory));

cl::list<std::string> dims("dim", cl::desc("bind symbolic dimensions"), cl::value_desc("NAME=V[,NAME=V]"),
                           cl::cat(modelCategory));
cl::opt<std::string>
    batch("batch",
          cl::desc("dim 0 of the first input, per rank and micro-step; max: the largest that fits --memory"),
          cl::value_desc("B|max"), cl::cat(modelCategory));
cl::list<std::string> inputShapes("input-shape", cl::desc("bind an input's dims by position"),
                                  cl::value_desc("NAME=8x128[,NAME=8x128]"), cl::cat(modelCategory));
cl::opt<std::string> externalDataRoot("external-data-root",
                                      cl::desc("folder of external weights; default: the model's"),
                                      cl::value_desc("DIR"), cl::cat(modelCategory));
cl::list<std::string> freeze("freeze", cl::desc("parameters that are not trained"), cl::value_desc("GLOB"),
                             cl::cat(modelCategory));
cl::opt<std::string> untie("untie", cl::desc("undo ties that an exporter made of equal values; default auto"),
                           cl::value_desc("auto|never"), cl::init("auto"), cl::cat(modelCategory));
cl::list<std::string> tie("tie", cl::desc("make two parameters one"), cl::value_desc("A=B"), cl::cat(modelCategory));

cl::opt<std::string> loss("loss",
                          cl::desc("an output that is the mean loss, or the loss to add; auto: output loss, "
                                   "else cross_entropy; default auto"),
                          cl::value_desc("auto|cross_entropy|mse|NAME"), cl::init("auto"),
                          cl::cat(stepCategory));
cl::opt<std::string> logits("logits",
                            cl::desc("output that an added loss reads; default logits, or the only one"),
                            cl::value_desc("NAME"), cl::cat(stepCategory));
cl::opt<std::string> labels("labels", cl::desc("name of the input that an added loss reads; default labels"),
                            cl::value_desc("NAME"), cl::init("labels"), cl::cat(stepCategory));
cl::opt<int64_t> ignoreIndex("ignore-index", cl::desc("label that does not count; default -100"),
                             cl::value_desc("LABEL"), cl::init(-100), cl::cat(stepCategory));
cl::opt<std::string> shiftRight("shift-right", cl::desc("make decoder_input_ids from the labels"),
                                cl::value_desc("PAD:START"), cl::cat(stepCategory));
cl::opt<std::string>
    optimizer("optimizer",
              cl::desc("decides state; rates and decay are given to shardc-train; default adamw"),
              cl::value_desc("adamw|adam|sgd"), cl::init("adamw"), cl::cat(stepCategory));
cl::opt<std::string> precision("precision",
                               cl::desc("of what is computed and kept; fp64: for checks; default fp32"),
                               cl::value_desc("fp32|tf32|bf16|fp16|fp64"), cl::init("fp32"),
                               cl::cat(stepCategory));
cl::opt<std::string> dropout("dropout", cl::desc("sets every dropout ratio; default: as exported"),
                             cl::value_desc("P"), cl::cat(stepCategory));

cl::opt<std::string> ranks("ranks", cl::desc("data-parallel ranks; default 1"), cl::value_desc("N"),
                           cl::cat(planCategory));
cl::opt<std::string> zero("zero", cl::desc("ZeRO stage; default 0 at 1 rank, else 3"), cl::value_desc("0..3"),
                          cl::cat(planCategory));
cl::opt<std::string> accumulate("accumulate", cl::desc("micro-steps per update; default 1"),
                                cl::value_desc("K"), cl::cat(planCategory));
cl::opt<std::string> bucket("bucket",
                            cl::desc("parameters that are gathered and reduced together: those of a layer, "
                                     "or as many as fit; default layer"),
                            cl::value_desc("SIZE|layer"), cl::init("layer"), cl::cat(planCategory));
cl::opt<Size> prefetchLimit(
    "prefetch-limit",
    cl::desc("gathered parameters at one time, in use or ahead; default: the two largest neighbours"),
    cl::cat(planCategory));
cl::opt<std::string> machine("machine",
                             cl::desc("cost model: a built-in name or a JSON file; default cpu, or of "
                                      "--target cuda, by --ranks: h200, h200x2, h200x8"),
                             cl::value_desc("FILE.json|NAME"), cl::cat(planCategory));
cl::opt<std::string> target("target", cl::desc("what the plan is for: cpu or cuda; default cpu"),
                            cl::value_desc("cpu|cuda"), cl::init("cpu"), cl::cat(planCategory));
cl::opt<std::string> reduceDtype("reduce-dtype",
                                 cl::desc("what gradients are kept and summed over ranks in: fp32, or auto: "
                                          "16 bits for one micro-step of bf16; default auto"),
                                 cl::value_desc("auto|fp32"), cl::init("auto"), cl::cat(planCategory));
cl::opt<Size> memory(
    "memory",
    cl::desc("what a rank may take: the plan's memory, and what its machine says lies beside it. A plan that "
             "needs more is an error (exit code 3) that says why, and what would fit; default: any"),
    cl::cat(planCategory));
cl::opt<bool> estimate("estimate",
                       cl::desc("instead of a plan: a table of memory and time for all stages on 1, 2, 4 and "
                                "8 ranks (of --ranks, --zero where given)"),
                       cl::cat(planCategory));

// Flags of the next increments: refused by name, so that nobody takes them for honoured.
cl::opt<std::string> hostMemory("host-memory", cl::desc("not built yet"), cl::value_desc("SIZE"),
                                cl::cat(planCategory));
cl::opt<std::string> disk("disk", cl::desc("not built yet"), cl::value_desc("DIR[:SIZE]"), cl::cat(planCategory));
cl::opt<std::string> recompute("recompute", cl::desc("not built yet, but for none"), cl::value_desc("none"),
                               cl::init("none"), cl::cat(planCategory));
cl::opt<std::string> offload("offload", cl::desc("not built yet, but for none"), cl::value_desc("none"),
                             cl::init("none"), cl::cat(planCategory));

Error checkNotBuilt() {
  struct {
    const char *flag;
    StringRef value, only;
  } const kFlags[] = {{"host-memory", hostMemory, ""}, {"disk", disk, ""}, {"recompute", recompute, "none"},
                      {"offload", offload, "none"}};
  for (auto &[flag, value, only] : kFlags)
    if (value != only)
      return notBuilt(flag, value, only);
  return Error::success();
}

Expected<ImportOptions> importOptions() {
  ImportOptions o;
  if (Error error = parseBindings("--dim", dims, o.dims))
    return error;
  if (Error error = parseShapes("--input-shape", inputShapes, o.inputShapes))
    return error;
  if (Error error = parsePairs("--tie", tie, o.parameters.ties))
    return error;
  if (!batch.empty() && batch != "max") {
    auto value = parseCount("--batch", batch, 1);
    if (!value)
      return value.takeError();
    o.batch = *value;
  }
  o.loss = loss;
  o.logits = logits;
  o.labels = labels;
  o.ignoreIndex = ignoreIndex;
  o.freeze.assign(freeze.begin(), freeze.end());
  if (!shiftRight.empty()) {
    auto [pad, start] = StringRef(shiftRight).split(':');
    o.shiftRight.emplace();
    if (pad.getAsInteger(10, o.shiftRight->pad) || start.getAsInteger(10, o.shiftRight->start))
      return userError("--shift-right: got '" + shiftRight + "', wanted PAD:START such as 0:0");
  }
  if (untie != "auto" && untie != "never")
    return userError("--untie: got '" + untie + "', wanted auto or never");
  o.parameters.untie = untie == "never" ? ParameterOptions::Untie::Never : ParameterOptions::Untie::Auto;
  return o;
}

Expected<CompileOptions> compileOptions() {
  CompileOptions o;
  if (Error error = checkNotBuilt())
    return error;
  struct Count {
    const char *flag;
    cl::opt<std::string> &text;
    unsigned &out;
    int64_t least, most;
  };
  for (auto &[flag, text, out, least, most] :
       {Count{"--ranks", ranks, o.ranks, 1, 1 << 16}, Count{"--zero", zero, o.zero, 0, 3},
        Count{"--accumulate", accumulate, o.accumulate, 1, 1 << 24}}) {
    if (text.empty())
      continue;
    auto value = parseCount(flag, text, least, most);
    if (!value)
      return value.takeError();
    out = unsigned(*value);
  }
  if (zero.empty())
    o.zero = o.ranks > 1 ? 3 : 0;
  if (bucket != "layer") {
    auto bytes = parseSize(bucket);
    if (!bytes)
      return handleErrors(bytes.takeError(),
                          [](const UserError &e) { return userError("--bucket: " + e.text(), e.hint()); });
    if (*bytes == 0)
      return userError("--bucket: got '" + bucket + "', wanted layer or a size above 0");
    o.bucketBytes = *bytes;
  }
  if (prefetchLimit.getNumOccurrences())
    o.prefetchLimit = prefetchLimit.bytes;
  if (optimizer == "adafactor" || optimizer == "lamb")
    return userError("--optimizer: not built yet: got '" + optimizer + "', wanted adamw, adam or sgd");
  if (Error error = parseChoice("--optimizer", optimizer, {Optimizer::AdamW, Optimizer::Adam, Optimizer::Sgd},
                                o.optimizer))
    return error;
  if (Error error = parseChoice(
          "--precision", precision,
          {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16, Precision::Fp64}, o.precision))
    return error;
  if (reduceDtype != "auto" && reduceDtype != "fp32")
    return userError("--reduce-dtype: got '" + reduceDtype + "', wanted auto or fp32");
  o.reduceInFp32 = reduceDtype == "fp32";
  if (!dropout.empty()) {
    double p;
    if (StringRef(dropout).getAsDouble(p) || !(p >= 0 && p < 1))
      return userError("--dropout: got '" + dropout + "', wanted a ratio in [0, 1)");
    o.dropout = p;
  }
  if (target != "cpu" && target != "cuda")
    return userError("--target: got '" + target + "', wanted cpu or cuda");
  o.target = target;
  o.machine = machine.getNumOccurrences() ? std::string(machine) : defaultMachine(target, o.ranks);
  if (memory.getNumOccurrences() && memory.bytes <= 0)
    return userError("--memory: got 0, wanted a size such as 24GiB");
  o.memory = uint64_t(memory.bytes);
  return o;
}

Error checkOutput() {
  if (emit != "ir" && emit != "plan" && emit != "plan-text")
    return userError("--emit: got '" + emit + "', wanted ir, plan or plan-text");
  DebugOptions debug = debugFlags.options();
  bool looksInside = debug.timePasses || debug.verifyEach || !debug.printAfter.empty() || !debug.stopAfter.empty() ||
                     !debug.dumpDir.empty() || !debug.reproducer.empty();
  if (estimate && (!outputPath.empty() || emit.getNumOccurrences() || looksInside))
    return userError("--estimate: makes no plan: got -o, --emit or a flag for looking inside, wanted none of them");
  if (!estimate && emit == "plan" && outputPath.empty() && debugFlags.options().stopAfter.empty())
    return userError("-o: got none, wanted where the plan goes", "add -o model.plan");
  return Error::success();
}

} // namespace

std::string defaultMachine(StringRef target, unsigned ranks) {
  if (target != "cuda")
    return "cpu";
  return ranks == 1 ? "h200" : ranks == 2 ? "h200x2" : "h200x8";
}

Expected<Flags> readFlags(int argc, char **argv) {
  parseCommandLine(argc, argv,
                   {"Compiles an ONNX model into a training plan.",
                    "shardc t5.onnx -o t5.plan --dim batch=8,src=128,tgt=128\n"
                    "shardc bert.onnx -o bert.plan --dim batch=16,src=128 --loss cross_entropy --logits "
                    "logits --labels labels\n"
                    "shardc t5.onnx -o t5.plan --dim src=128,tgt=128 --ranks 2 --target cuda --precision "
                    "bf16 --memory 24GiB --batch max\n"
                    "shardc t5.onnx --estimate --dim batch=8,src=128,tgt=128 --target cuda --precision bf16 "
                    "--memory 24GiB\n"
                    "shardc t5.onnx --dim batch=8,src=128,tgt=128 --stop-after insert-gradients | less",
                    {&modelCategory, &stepCategory, &planCategory, &outputCategory, &debugFlags.category}});
  auto imports = importOptions();
  if (!imports)
    return imports.takeError();
  auto compiles = compileOptions();
  if (!compiles)
    return compiles.takeError();
  if (Error error = checkOutput())
    return error;
  Flags flags;
  flags.model = modelPath;
  flags.output = outputPath;
  flags.emit = emit;
  flags.externalDataRoot = externalDataRoot;
  flags.import = std::move(*imports);
  flags.compile = std::move(*compiles);
  flags.debug = debugFlags.options();
  flags.estimate = estimate;
  flags.largestBatch = batch == "max";
  flags.machineGiven = machine.getNumOccurrences();
  flags.ranksGiven = ranks.getNumOccurrences();
  flags.zeroGiven = zero.getNumOccurrences();
  return flags;
}

} // namespace shardc
