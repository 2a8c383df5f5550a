// SPDX-License-Identifier: Apache-2.0
#include "passes/EmitPlan.h"
#include "passes/Machine.h"
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

} // namespace

llvm::Expected<plan::Plan> emitPlan(const Graph &train, const Graph &eval, const plan::Model &model,
                                    const CompileOptions &options) {
  auto machine = loadMachine(options.machine);
  if (!machine)
    return machine.takeError();
  plan::Plan plan;
  writeHeader(train, model, options, *machine, plan);

  // What is issued, then where it lies.
  Buckets buckets = bucketLayout(train, options.ranks);
  emit::Sequence step = emit::buildSequence(train, buckets), evaluation = emit::buildSequence(eval, buckets);
  emit::Storage storage(plan, buckets);
  uint64_t update = step.step.size(), end = update + step.update.size();
  storage.place(step, 0, update);
  storage.place(evaluation, end, end + evaluation.step.size());

  emit::CommandWriter trainWriter(step, storage, *machine), evalWriter(evaluation, storage, *machine);
  const struct {
    const char *name;
    emit::CommandWriter &writer;
    llvm::ArrayRef<emit::Item> items;
  } programs[] = {{"train", trainWriter, step.step}, {"update", trainWriter, step.update}, {"eval", evalWriter, evaluation.step}};
  for (auto &[name, writer, items] : programs) {
    plan::Program &program = *plan.add_programs();
    program.set_name(name);
    writer.write(items, program);
  }
  storage.pack();

  plan.set_scalars_buffer(storage.scalars());
  emit::writeBuckets(buckets, storage, plan);
  emit::writeParameters(train, buckets, plan);
  emit::writeInputs(train, storage, plan);
  emit::writeInputs(eval, storage, plan);
  emit::writeOutputs(train, trainWriter, "train", plan);
  emit::writeOutputs(eval, evalWriter, "eval", plan);
  double microseconds = 0;
  for (const plan::Program &program : plan.programs())
    if (program.name() != "eval")
      for (const plan::Command &command : program.commands())
        microseconds += command.predicted_us();
  plan.set_predicted_ms(microseconds / 1e3);
  return plan;
}

} // namespace shardc
