// SPDX-License-Identifier: Apache-2.0
#include "passes/EmitPlan.h"
#include "ir/base/Error.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Text.h"
#include "passes/Defragment.h"
#include "passes/Timeline.h"
#include "passes/emit/Tables.h"

namespace shardc {
namespace {

void addOption(plan::Plan &plan, llvm::StringRef name, llvm::StringRef value) {
  plan::Attr &attr = *plan.add_options();
  attr.set_name(name.str());
  attr.set_s(value.str());
}

void writeHeader(const Graph &train, const plan::Model &model, const CompileOptions &options, const Machine &machine, plan::Plan &plan) {
  plan.set_version(kPlanVersion);
  plan.set_compiler("shardc " SHARDC_VERSION);
  *plan.mutable_model() = model;
  plan.set_ranks(options.ranks);
  plan.set_zero(options.zero);
  plan.set_accumulate(options.accumulate);
  plan.set_batch(train.attrs.getInt("batch", 1));
  plan.set_floor_bytes(machine.floorBytes);
  addOption(plan, "optimizer", toString(options.optimizer));
  addOption(plan, "precision", toString(options.precision));
  addOption(plan, "target", options.target);
  addOption(plan, "machine", machine.name);
  for (const Op &op : train.ops()) {
    plan.set_forward_ops(plan.forward_ops() + (op.phase == Phase::Forward));
    plan.set_backward_ops(plan.backward_ops() + (op.phase == Phase::Backward));
  }
}

/// Refuses what no memory holds. Sums of sizes overflow no earlier.
llvm::Error checkSizes(const plan::Plan &plan) {
  double all = 0;
  for (const plan::Buffer &buffer : plan.buffers())
    all += double(buffer.bytes());
  const uint64_t bound = all < 0x1p62 ? findPeak(plan, 0).bytes : uint64_t(1) << 62;
  if (bound <= kMaxSpaceBytes)
    return llvm::Error::success();
  return userError("the plan is too large for any memory: got " + bytesText(bound) + " or more a rank, wanted at most " +
                       bytesText(kMaxSpaceBytes),
                   "a smaller batch or shorter sequences: --batch, --dim");
}

/// Of an update step: what is computed, and what communication adds to it.
void predict(llvm::ArrayRef<ProgramGraph> programs, const Machine &machine, plan::Plan &plan) {
  double computed = 0, exposed = 0, withoutPrefetch = 0;
  for (auto [graph, program] : llvm::zip(programs, plan.programs())) {
    double runs = double(runsPerStep(plan, program));
    for (const plan::Command &command : program.commands())
      if (command.communicator() == 0)
        computed += runs * command.predicted_us() / 1e3;
    Exposed ms = exposedMs(*graph.graph, machine);
    exposed += runs * ms.ms;
    withoutPrefetch += runs * ms.withoutPrefetchMs;
  }
  plan.set_predicted_ms(computed + exposed);
  plan.set_exposed_ms(exposed);
  plan.set_exposed_ms_without_prefetch(withoutPrefetch);
}

} // namespace

llvm::Expected<plan::Plan> emitPlan(llvm::ArrayRef<ProgramGraph> programs, const plan::Model &model, const CompileOptions &options) {
  auto machine = loadMachine(options.machine);
  if (!machine)
    return machine.takeError();
  plan::Plan plan;
  writeHeader(*programs.front().graph, model, options, *machine, plan);

  // What is issued, then where it lies.
  Buckets buckets = bucketLayout(*programs.front().graph, options.ranks);
  std::vector<emit::Sequence> sequences;
  for (const ProgramGraph &program : programs)
    sequences.push_back(emit::buildSequence(*program.graph));
  emit::Storage storage(plan, buckets, options);
  for (const emit::Sequence &sequence : sequences)
    storage.place(sequence);
  std::vector<emit::CommandWriter> writers;
  for (auto [program, sequence] : llvm::zip(programs, sequences)) {
    plan::Program &out = *plan.add_programs();
    out.set_name(program.name);
    writers.emplace_back(sequence, storage, *machine, plan).write(out);
  }
  if (llvm::Error error = checkSizes(plan))
    return error;
  const uint64_t capacity = options.memory - std::min(options.memory, machine->floorBytes);
  storage.pack(capacity);
  if (capacity)
    defragment(plan, capacity, *machine);

  plan.set_scalars_buffer(storage.scalars());
  if (std::optional<uint32_t> scale = storage.state(zero::Role::LossScale, -1))
    plan.set_loss_scale_buffer(*scale);
  emit::writeBuckets(buckets, storage, options, plan);
  emit::writeParameters(*programs.front().graph, buckets, plan);
  for (auto [program, writer] : llvm::zip(programs, writers)) {
    emit::writeInputs(*program.graph, storage, plan);
    emit::writeOutputs(*program.graph, writer, program.name, plan);
  }
  emit::writeVersions(plan);
  predict(programs, *machine, plan);
  return plan;
}

} // namespace shardc
