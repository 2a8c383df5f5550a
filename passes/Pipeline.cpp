// SPDX-License-Identifier: Apache-2.0
#include "passes/Pipeline.h"
#include "passes/LimitedOrder.h"
#include "passes/Passes.h"
#include "passes/emit/Arena.h"

namespace shardc {

llvm::ArrayRef<NamedPass> allPasses() {
  static constexpr NamedPass kPasses[] = {
#define SHARDC_PASS(NAME, FUNCTION) {NAME, FUNCTION},
#include "passes/Passes.def"
#undef SHARDC_PASS
  };
  return kPasses;
}

/// From whatever the exporter wrote to the ops that we have kernels for.
static void prepare(PassRunner &run) {
  run("dce", dce);
  run("set-dropout", setDropout);     // removes dropout of ratio 0, which would hide patterns
  run("simplify", simplify);
  run("cse", cse);
  run("raise", raise);
  run("simplify", simplify);
  run("dce", dce); // what raise has replaced would count as users
  run("set-precision", setPrecision); // raised ops keep statistics and sums wide
  run("cse", cse);
  run("dce", dce); // what nobody uses would count as a user
  run("product-epilogues", productEpilogues);
  run("dce", dce);
}

/// From a forward pass to a training step.
static void differentiate(PassRunner &run) {
  run("insert-gradients", insertGradients);
  run("simplify", simplify); // transposes of weight gradients go into the products
  run("cse", cse);           // before accumulation: afterwards values are overwritten
  run("dce", dce);
  run("join-gradients", joinGradients);
  run("chunk-loss", chunkLoss);
  run("dce", dce);
  run("accumulate-in-place", accumulateInPlace);
}

/// Lets communication hide behind computing.
static void overlap(PassRunner &run) {
  run("gather-prefetch", gatherPrefetch);
  run("reduce-early", reduceEarly);
}

/// From what one rank would do to what each of N ranks does, in an order that the runtime can issue.
static void shardAndSchedule(PassRunner &run) {
  run("zero-partition", zeroPartition);
  run("dce", dce); // parameters that are gathered now
  run("fuse", fuse);
  run("materialize", materialize); // after fuse: fused ops read any strides
  run("cse", cse);
  run("dce", dce);
  overlap(run);
}

/// The update of all buckets; nothing of the model is left in it.
static void buildUpdate(PassRunner &run) {
  run("insert-optimizer", insertOptimizer);
  run("fuse", fuse);
  overlap(run);
}

/// The forward pass alone: outputs that training adds are not there yet.
static void buildEval(PassRunner &run) {
  run("set-dropout", setDropout);
  run("dce", dce);
  shardAndSchedule(run);
}

/// An update step's micro-step programs: one, or first, middle, last.
static llvm::SmallVector<MicroStep, 3> microSteps(unsigned accumulate) {
  if (accumulate == 1)
    return {MicroStep::Only};
  if (accumulate == 2)
    return {MicroStep::First, MicroStep::Last};
  return {MicroStep::First, MicroStep::Middle, MicroStep::Last};
}

static llvm::StringRef programName(MicroStep step) {
  static constexpr llvm::StringLiteral kNames[] = {"train", "train_first", "train_middle", "train_last"};
  return kNames[unsigned(step)];
}

/// The most that comes and goes and lives at once.
static uint64_t peakOf(llvm::ArrayRef<ProgramGraph> programs, const CompileOptions &options) {
  uint64_t peak = 0;
  for (const ProgramGraph &program : programs)
    if (program.graph->numOps()) {
      LiveBytes live(*program.graph, options);
      peak = std::max(peak, *llvm::max_element(liveProfile(orderOf(*program.graph), live)));
    }
  return peak;
}

llvm::Expected<Compilation> compile(std::unique_ptr<Graph> graph, const plan::Model &model,
                                    const CompileOptions &asked, const DebugOptions &debug) {
  Compilation result;
  CompileOptions options = asked;
  DebugOptions quiet; // the programs beside the one that the flags look into: the last micro-step
  quiet.verifyEach = debug.verifyEach;

  llvm::SmallVector<MicroStep, 3> steps = microSteps(options.accumulate);
  options.microStep = steps.back();
  PassRunner run(*graph, options, debug);
  prepare(run);
  run("assign-buckets", assignBuckets);
  run("merge-products", mergeProducts); // knows now which weights are neighbours
  std::unique_ptr<Graph> eval = run.stopped() ? nullptr : graph->clone();
  differentiate(run);
  std::unique_ptr<Graph> step = run.stopped() ? nullptr : graph->clone();
  shardAndSchedule(run);
  std::vector<ProgramGraph> given; // the programs in their order before peak-order
  std::unique_ptr<Graph> givenStep = run.stopped() ? nullptr : graph->clone();
  run("peak-order", peakOrder);
  result.step = std::move(graph);
  if (llvm::Error error = run.take())
    return error;
  if (run.stopped())
    return result;

  auto build = [&](llvm::StringRef name, std::unique_ptr<Graph> from, const CompileOptions &own, void (*passes)(PassRunner &)) {
    from->name = name.str();
    PassRunner inner(*from, own, quiet);
    passes(inner);
    given.push_back({name.str(), from->clone()});
    if (name != "eval") // whose peak is never the step's
      inner("peak-order", peakOrder);
    result.programs.push_back({name.str(), std::move(from)});
    return inner.take();
  };
  for (MicroStep micro : llvm::ArrayRef(steps).drop_back()) {
    options.microStep = micro;
    if (llvm::Error error = build(programName(micro), step->clone(), options, shardAndSchedule))
      return error;
  }
  result.programs.push_back({programName(steps.back()).str(), result.step->clone()});
  given.push_back({programName(steps.back()).str(), std::move(givenStep)});
  if (llvm::Error error = build("update", step->withoutOps(), options, buildUpdate))
    return error;
  options.dropout = 0;
  if (llvm::Error error = build("eval", std::move(eval), options, buildEval))
    return error;
  auto start = std::chrono::steady_clock::now();
  auto plan = emitPlan(result.programs, model, asked);
  // An order with a lower peak may be so much harder to pack that the one before takes less.
  const uint64_t loose = plan ? emit::looseBytes(*plan) : 0;
  if (loose && peakOf(given, asked) - peakOf(result.programs, asked) < loose) {
    auto other = emitPlan(given, model, asked);
    if (!other)
      return other.takeError();
    if (other->spaces(0).bytes() < plan->spaces(0).bytes()) {
      plan = std::move(other);
      result.programs = std::move(given);
    }
  }
  run.addTime("emit", start);
  if (!plan)
    return plan.takeError();
  result.plan = std::move(*plan);
  return result;
}

} // namespace shardc
