// SPDX-License-Identifier: Apache-2.0
#include "passes/Pipeline.h"
#include "passes/EmitPlan.h"
#include "passes/Passes.h"

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
  run("set-precision", setPrecision); // before raise: patterns compare constants in the final type
  run("set-dropout", setDropout);     // removes dropout of ratio 0, which would hide patterns
  run("simplify", simplify);
  run("cse", cse);
  run("raise", raise);
  run("simplify", simplify);
  run("cse", cse);
  run("dce", dce);
}

/// From a forward pass to a training step.
static void differentiate(PassRunner &run) {
  run("insert-gradients", insertGradients);
  run("simplify", simplify); // transposes of weight gradients go into the products
  run("cse", cse);           // before accumulation: afterwards values are overwritten
  run("dce", dce);
  run("accumulate-in-place", accumulateInPlace);
  run("insert-optimizer", insertOptimizer);
}

/// From a step to what the runtime can issue.
static void schedule(PassRunner &run) {
  run("fuse", fuse);
  run("materialize", materialize); // after fuse: fused ops read any strides
  run("cse", cse);
  run("dce", dce);
}

/// The forward pass alone: outputs that training adds are not there yet.
static llvm::Error buildEval(Graph &graph, CompileOptions options, const DebugOptions &debug) {
  DebugOptions quiet;
  quiet.verifyEach = debug.verifyEach;
  options.dropout = 0;
  PassRunner run(graph, options, quiet);
  run("set-dropout", setDropout);
  run("dce", dce);
  schedule(run);
  return run.take();
}

llvm::Expected<Compilation> compile(std::unique_ptr<Graph> graph, const plan::Model &model,
                                    const CompileOptions &options, const DebugOptions &debug) {
  Compilation result;
  PassRunner run(*graph, options, debug);
  prepare(run);
  if (!run.stopped())
    result.eval = graph->clone();
  differentiate(run);
  schedule(run);
  result.train = std::move(graph);
  if (llvm::Error error = run.take())
    return error;
  if (run.stopped())
    return result;

  result.eval->name = "eval";
  if (llvm::Error error = buildEval(*result.eval, options, debug))
    return error;
  auto plan = emitPlan(*result.train, *result.eval, model, options);
  if (!plan)
    return plan.takeError();
  result.plan = std::move(*plan);
  return result;
}

} // namespace shardc
