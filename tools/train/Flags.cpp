// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Flags.h"
#include "ir/base/Error.h"
#include "tools/common/CommandLine.h"
#include <cmath>

namespace shardc {
namespace {

using namespace llvm;

cl::OptionCategory dataCategory("Data and weights");
cl::OptionCategory optimizerCategory("Optimizer");
cl::OptionCategory outputCategory("Output");
cl::OptionCategory machineCategory("Machine");

cl::opt<std::string> planFlag(cl::Positional, cl::desc("FILE.plan"), cl::cat(dataCategory));
cl::list<std::string>
    dataFlag("data", cl::value_desc("FILE"), cl::cat(dataCategory),
             cl::desc(".safetensors or .npz: one array per input, stacked along dim 0; given more "
                      "than once, the files are parts of one set"));
cl::list<std::string>
    evalDataFlag("eval-data", cl::value_desc("FILE"), cl::cat(dataCategory),
                 cl::desc("data to evaluate on, at the end of the run and every --eval-steps"));
cl::opt<int64_t> evalStepsFlag("eval-steps", cl::value_desc("N"), cl::cat(dataCategory),
                               cl::init(0), cl::desc("evaluate after every N updates too"));
cl::opt<std::string>
    weightsFlag("weights", cl::value_desc("FILE"), cl::cat(dataCategory),
                cl::desc("starting values: .safetensors by parameter name, or the ONNX file itself "
                         "(default: the one that the plan names)"));
cl::opt<std::string> initFlag(
    "init-weights", cl::value_desc("zeros|normal[:STD]"), cl::cat(dataCategory),
    cl::desc("for parameters without values: zeros, or normal(0, STD = 0.02) for matrices, "
             "1 for norms and 0 for biases"));
cl::opt<bool> noShuffleFlag(
    "no-shuffle", cl::cat(dataCategory),
    cl::desc("read rows in the files' order; default: another order each epoch, by --seed. Rows "
             "at the end of an epoch that do not fill a batch are left out of it either way"));
cl::opt<uint64_t> seedFlag("seed", cl::value_desc("N"), cl::init(42), cl::cat(dataCategory),
                           cl::desc("of the order of rows, dropout and --init-weights; 42"));

cl::opt<int64_t> maxStepsFlag("max-steps", cl::value_desc("N"), cl::cat(optimizerCategory),
                              cl::desc("number of updates; wins over --num-train-epochs"));
cl::opt<double> epochsFlag("num-train-epochs", cl::value_desc("E"), cl::cat(optimizerCategory),
                           cl::desc("passes over the data; fractions are fine"));
cl::opt<double> learningRateFlag("learning-rate", cl::value_desc("LR"), cl::init(5e-5),
                                 cl::cat(optimizerCategory), cl::desc("the peak; 5e-5"));
cl::opt<std::string>
    scheduleFlag("lr-scheduler-type", cl::value_desc("TYPE"), cl::init("linear"),
                 cl::cat(optimizerCategory),
                 cl::desc("linear, constant, cosine or constant_with_warmup; linear"));
cl::opt<int64_t> warmupStepsFlag("warmup-steps", cl::value_desc("N"), cl::init(0),
                                 cl::cat(optimizerCategory),
                                 cl::desc("updates from rate 0 up to the peak; 0"));
cl::opt<double>
    warmupRatioFlag("warmup-ratio", cl::value_desc("R"), cl::init(0), cl::cat(optimizerCategory),
                    cl::desc("the same as a part of all updates, rounded up; --warmup-steps wins"));
cl::opt<double> beta1Flag("adam-beta1", cl::value_desc("B"), cl::init(0.9),
                          cl::cat(optimizerCategory), cl::desc("adam, adamw; 0.9"));
cl::opt<double> beta2Flag("adam-beta2", cl::value_desc("B"), cl::init(0.999),
                          cl::cat(optimizerCategory), cl::desc("adam, adamw; 0.999"));
cl::opt<double> epsilonFlag("adam-epsilon", cl::value_desc("E"), cl::init(1e-8),
                            cl::cat(optimizerCategory), cl::desc("adam, adamw; 1e-8"));
cl::opt<double>
    decayFlag("weight-decay", cl::value_desc("D"), cl::init(0), cl::cat(optimizerCategory),
              cl::desc("adamw: decoupled; adam, sgd: added to the gradient (L2), as in torch; 0"));
cl::opt<bool> decayAllFlag("decay-all", cl::cat(optimizerCategory),
                           cl::desc("decay 1-D parameters too"));
cl::opt<double> momentumFlag("momentum", cl::value_desc("M"), cl::init(0),
                             cl::cat(optimizerCategory), cl::desc("sgd; 0"));
cl::opt<bool> nesterovFlag("nesterov", cl::cat(optimizerCategory),
                           cl::desc("sgd: Nesterov's momentum"));
cl::opt<double> maxNormFlag("max-grad-norm", cl::value_desc("N"), cl::init(1),
                            cl::cat(optimizerCategory),
                            cl::desc("clip the gradient's global norm to N; 0: no clipping; 1"));
cl::opt<bool> stopOnNanFlag("stop-on-nan", cl::cat(optimizerCategory),
                            cl::desc("stop with exit code 4 when the loss is not finite"));

cl::opt<std::string>
    outputDirFlag("output-dir", cl::value_desc("DIR"), cl::cat(outputCategory),
                  cl::desc("log.jsonl (a line per update), train_results.json, model.safetensors"));
cl::opt<std::string> saveWeightsFlag("save-weights", cl::value_desc("FILE.safetensors"),
                                     cl::cat(outputCategory),
                                     cl::desc("the final weights, by parameter name"));
cl::opt<std::string>
    dumpGradientsFlag("dump-gradients", cl::value_desc("FILE.safetensors"), cl::cat(outputCategory),
                      cl::desc("the first update's gradients: averaged, not clipped"));

cl::opt<std::string> deviceFlag("device", cl::value_desc("cpu|cuda"), cl::cat(machineCategory),
                                cl::desc("where to run; default: what the plan is for"));
cl::opt<bool> noGraphsFlag("no-cuda-graphs", cl::cat(machineCategory),
                           cl::desc("--device cuda: launch every kernel by itself, with the same results"));
cl::opt<std::string>
    tuningFlag("tuning", cl::value_desc("FILE|off"), cl::cat(machineCategory),
               cl::desc("--device cuda: where the fastest algorithms of products are kept; what it lacks is timed and added. The "
                        "same file gives the same bits; off: none are timed. Default: shardc/tuning.txt in the cache folder"));
cl::opt<unsigned>
    ranksFlag("ranks", cl::value_desc("N"), cl::cat(machineCategory),
              cl::desc("data-parallel ranks; default, and nothing else: as in the plan"));
cl::opt<std::string> calibrateFlag("calibrate", cl::value_desc("FILE.json"), cl::cat(machineCategory),
                                   cl::desc("instead of training: measure this machine, with --ranks N the link between N devices too, and "
                                            "write what shardc --machine reads"));
cl::opt<bool> processesFlag("processes", cl::cat(machineCategory),
                            cl::desc("each rank is a process of its own on this host, as under torchrun; default: where there is a CUDA "
                                     "device for each. Else ranks are threads, on CUDA of one device"));
cl::opt<Size> memoryFlag("memory", cl::cat(machineCategory),
                         cl::desc("what a rank may take of its device: the plan's memory, and what libraries and driver take beside it. "
                                  "Where that does not fit, exit code 3 before the first step; default: any"));
cl::opt<std::string> traceFlag("trace", cl::value_desc("FILE.json"), cl::cat(outputCategory),
                               cl::desc("when each command of rank 0 ran in the last step, and should have: for Perfetto; a "
                                        "table by kernel goes to stderr"));
cl::opt<bool> checkRacesFlag("check-races", cl::cat(machineCategory),
                             cl::desc("run everything twice, with random pauses, the second time with memory of its "
                                      "own for each buffer, and stop with exit code 4 where a bit differs"));

// In the table of the command line, not built yet: refused by name.
cl::OptionCategory laterCategory("Not built yet (refused)");
cl::opt<int64_t> saveStepsFlag("save-steps", cl::value_desc("N"), cl::cat(laterCategory),
                               cl::desc("checkpoints"));
cl::opt<int64_t> saveLimitFlag("save-total-limit", cl::value_desc("N"), cl::cat(laterCategory),
                               cl::desc("checkpoints"));
cl::opt<std::string> resumeFlag("resume", cl::ValueOptional, cl::value_desc("DIR|latest"),
                                cl::cat(laterCategory), cl::desc("from a checkpoint"));
cl::opt<std::string> exportFlag("export", cl::value_desc("FILE.onnx"), cl::cat(laterCategory),
                                cl::desc("the trained model as ONNX"));

/// `what` begins with a flag, or with what the command line lacks.
Error commandLine(const Twine &what, const Twine &hint = "see shardc-train --help") {
  std::string text = what.str();
  return userError(StringRef(text).starts_with("--") ? text : "command line: " + text, hint);
}

Error checkNotBuilt() {
  for (const cl::Option *flag : std::initializer_list<const cl::Option *>{
           &resumeFlag, &exportFlag})
    if (flag->getNumOccurrences())
      return commandLine("--" + flag->ArgStr + " is not built yet", "leave it out");
  if (saveStepsFlag != 0)
    return commandLine("--save-steps is not built yet: got " + Twine(saveStepsFlag) + ", wanted 0",
                       "leave it out; --output-dir keeps the final weights");
  if (saveLimitFlag != 0)
    return commandLine("--save-total-limit is not built yet", "leave it out");
  return Error::success();
}

std::string text(double value) {
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%g", value);
  return buffer;
}

/// low <= value < high, and finite.
Error checkNumber(const cl::opt<double> &flag, double low, double high, const Twine &wanted) {
  if (std::isfinite(flag) && flag >= low && flag < high)
    return Error::success();
  return commandLine("--" + flag.ArgStr + " is out of range: got " + text(flag) + ", wanted " +
                     wanted);
}

Error checkNumbers() {
  for (const cl::opt<double> *flag :
       {&learningRateFlag, &epsilonFlag, &decayFlag, &momentumFlag, &maxNormFlag})
    if (Error error = checkNumber(*flag, 0, HUGE_VAL, "a number from 0"))
      return error;
  for (const cl::opt<double> *flag : {&beta1Flag, &beta2Flag})
    if (Error error = checkNumber(*flag, 0, 1, "a number from 0 to below 1"))
      return error;
  if (Error error = checkNumber(warmupRatioFlag, 0, std::nextafter(1, 2), "a number from 0 to 1"))
    return error;
  for (const cl::opt<int64_t> *flag : {&evalStepsFlag, &warmupStepsFlag, &maxStepsFlag})
    if (*flag < 0)
      return commandLine("--" + flag->ArgStr + " is out of range: got " + Twine(int64_t(*flag)) +
                         ", wanted a whole number from 0");
  if (nesterovFlag && momentumFlag == 0)
    return commandLine("--nesterov needs a --momentum above 0");
  if (seedFlag >= uint64_t(1) << 53)
    return commandLine("--seed is out of range: got " + Twine(uint64_t(seedFlag)) +
                       ", wanted a number below 2^53");
  bool hasSteps = maxStepsFlag > 0, hasEpochs = std::isfinite(epochsFlag) && epochsFlag > 0;
  if (epochsFlag.getNumOccurrences() && (!hasEpochs || epochsFlag > 1e6))
    return commandLine("--num-train-epochs is out of range: got " + text(epochsFlag) +
                       ", wanted a number above 0, up to 1e6");
  if (!hasSteps && !hasEpochs)
    return commandLine(
        "length of training is missing: wanted --max-steps N or --num-train-epochs E",
        "for example --num-train-epochs 3");
  return Error::success();
}

/// zeros, normal, normal:0.05
Expected<std::optional<double>> parseInit(StringRef text) {
  if (text.empty())
    return std::nullopt;
  if (text == "zeros")
    return 0.0;
  auto [kind, deviation] = text.split(':');
  double value = 0.02;
  bool fits = kind == "normal" && (text == "normal" || !deviation.getAsDouble(value));
  if (!fits || !std::isfinite(value) || value <= 0)
    return commandLine("--init-weights: got " + text + ", wanted zeros, normal or normal:STD");
  return value;
}

} // namespace

llvm::Expected<TrainFlags> parseFlags(int argc, char **argv) {
  cl::OptionCategory *categories[] = {&dataCategory, &optimizerCategory, &outputCategory,
                                      &machineCategory, &laterCategory};
  parseCommandLine(
      argc, argv,
      {"Trains a model by its plan.\n\n"
       "Step s of an epoch reads rows [s*G, (s+1)*G), G = batch x ranks x accumulate. Ctrl-C "
       "finishes the "
       "step, saves and exits with 130.",
       "shardc-train t5.plan --data train.safetensors --num-train-epochs 3 --output-dir out\n"
       "shardc-train t5.plan --data a.npz --data b.npz --eval-data dev.npz --max-steps 1000 "
       "--learning-rate 3e-4 --warmup-ratio 0.06 --save-weights t5.safetensors\n"
       "shardc-train --calibrate here.json --ranks 2",
       categories});
  if (Error error = checkNotBuilt())
    return error;
  if (!calibrateFlag.empty()) {
    if (!planFlag.empty() || !dataFlag.empty())
      return commandLine("--calibrate trains nothing: got a plan or data, wanted none");
    if (!deviceFlag.empty() && deviceFlag != "cpu" && deviceFlag != "cuda")
      return commandLine("--device: got " + deviceFlag + ", wanted cpu or cuda");
    TrainFlags flags;
    flags.arguments = llvm::ArrayRef<const char *>(argv, size_t(argc));
    flags.calibrate = calibrateFlag;
    flags.device = deviceFlag;
    flags.ranks = ranksFlag;
    return flags;
  }
  if (planFlag.empty())
    return commandLine("plan is missing: wanted shardc-train FILE.plan ...");
  if (dataFlag.empty())
    return commandLine("data is missing: wanted --data FILE");
  if (Error error = checkNumbers())
    return error;
  auto schedule = parseScheduleType(scheduleFlag);
  if (!schedule)
    return commandLine("--lr-scheduler-type: got " + scheduleFlag +
                       ", wanted linear, constant, cosine or constant_with_warmup");
  if (tuningFlag.getNumOccurrences() && tuningFlag.empty())
    return commandLine("--tuning: got '', wanted FILE or off");
  if (!traceFlag.empty() && checkRacesFlag)
    return commandLine("--trace and --check-races: got both, wanted one of them");
  if (evalStepsFlag > 0 && evalDataFlag.empty())
    return commandLine("--eval-steps needs --eval-data FILE");
  auto deviation = parseInit(initFlag);
  if (!deviation)
    return deviation.takeError();

  TrainFlags flags;
  flags.planPath = planFlag;
  flags.device = deviceFlag;
  flags.arguments = llvm::ArrayRef<const char *>(argv, size_t(argc));
  flags.cudaGraphs = !noGraphsFlag;
  if (tuningFlag.getNumOccurrences())
    flags.tuning = tuningFlag == "off" ? std::string() : tuningFlag.getValue();
  flags.processes = processesFlag;
  flags.memory = uint64_t(memoryFlag.getValue().bytes);
  flags.trace = traceFlag;
  flags.checkRaces = checkRacesFlag;
  flags.weights = {planFlag, weightsFlag, *deviation, seedFlag};
  TrainOptions &train = flags.train;
  train.data.assign(dataFlag.begin(), dataFlag.end());
  train.evalData.assign(evalDataFlag.begin(), evalDataFlag.end());
  train.evalSteps = evalStepsFlag;
  train.maxSteps = maxStepsFlag;
  train.epochs = epochsFlag;
  train.schedule = *schedule;
  train.learningRate = learningRateFlag;
  train.warmupSteps = warmupStepsFlag;
  train.warmupRatio = warmupRatioFlag;
  train.numbers = {beta1Flag,    beta2Flag,    epsilonFlag, decayFlag, decayAllFlag,
                   momentumFlag, nesterovFlag, maxNormFlag, seedFlag};
  train.shuffle = !noShuffleFlag;
  train.stopOnNan = stopOnNanFlag;
  train.outputDir = outputDirFlag;
  train.saveWeights = saveWeightsFlag;
  train.dumpGradients = dumpGradientsFlag;
  return flags;
}

static StringRef optionOf(const plan::Plan &plan, StringRef name) {
  const plan::Attr *attr = findAttr(plan.options(), name);
  return attr ? StringRef(attr->s()) : "";
}

llvm::Error checkFlags(const plan::Plan &plan, unsigned processes) {
  if (ranksFlag.getNumOccurrences() && ranksFlag != plan.ranks())
    return commandLine("--ranks differs from the plan: got " + Twine(unsigned(ranksFlag)) + ", wanted " +
                           Twine(plan.ranks()),
                       ranksFlag > 0 ? "leave it out, or compile the plan again with --ranks " + Twine(unsigned(ranksFlag))
                                     : "leave it out");
  if (processes > 0 && processes != plan.ranks())
    return userError("plan: ranks differ from the launcher's: got " + Twine(processes) + " processes, wanted " +
                         Twine(plan.ranks()) + ", one for each rank of the plan",
                     "start " + Twine(plan.ranks()) + ", or compile the plan again with --ranks " + Twine(processes));
  constexpr unsigned kMostThreads = 256; // a rank has three, and memory of its own
  if (processes == 0 && plan.ranks() > kMostThreads)
    return userError("plan: too many ranks for one process: got " + Twine(plan.ranks()) + ", wanted at most " +
                         Twine(kMostThreads),
                     "start one process for each rank, by torchrun, mpirun or srun");
  StringRef target = optionOf(plan, "target");
  if (!deviceFlag.empty() && deviceFlag != "cpu" && deviceFlag != "cuda")
    return commandLine("--device: got " + deviceFlag + ", wanted cpu or cuda");
  bool isCuda = (deviceFlag.empty() ? target : StringRef(deviceFlag)) == "cuda";
  if (isCuda && checkRacesFlag)
    return commandLine("--check-races runs on the host: got --device cuda, wanted cpu", "add --device cpu");
  for (const cl::Option *flag : std::initializer_list<const cl::Option *>{&noGraphsFlag, &tuningFlag})
    if (!isCuda && flag->getNumOccurrences())
      return commandLine("--" + flag->ArgStr + " is of no use here: the device is cpu",
                         "leave it out, or add --device cuda");

  StringRef optimizer = optionOf(plan, "optimizer");
  if (optimizer.empty())
    return Error::success();
  bool isAdam = optimizer.starts_with("adam"), isSgd = optimizer == "sgd";
  for (const cl::Option *flag :
       std::initializer_list<const cl::Option *>{&beta1Flag, &beta2Flag, &epsilonFlag})
    if (flag->getNumOccurrences() && !isAdam)
      return commandLine("--" + flag->ArgStr + " is of no use here: the plan's optimizer is " +
                         optimizer);
  for (const cl::Option *flag :
       std::initializer_list<const cl::Option *>{&momentumFlag, &nesterovFlag})
    if (flag->getNumOccurrences() && !isSgd)
      return commandLine("--" + flag->ArgStr + " is of no use here: the plan's optimizer is " +
                             optimizer,
                         "compile the plan with --optimizer sgd");
  return Error::success();
}

} // namespace shardc
