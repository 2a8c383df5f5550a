// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/Mutations.h"

using namespace llvm;

namespace shardc {
namespace {

void eachBucketDamage(const plan::Plan &plan, VisitDamage visit) {
  for (int i = 0; i < plan.buckets_size(); ++i) {
    auto damage = [&](StringRef kind, function_ref<void(plan::Bucket &)> apply) {
      visit(
          kind, [&] { return plan.buckets(i).name(); }, [&](plan::Plan &p) { apply(*p.mutable_buckets(i)); });
    };
    for (int64_t by : {-int64_t(plan.ranks()), int64_t(plan.ranks())})
      damage("wrong size of a bucket", [&](plan::Bucket &b) { b.set_elements(b.elements() + uint64_t(by)); });
    for (int64_t by : {-1, 1, 64})
      damage("wrong end of decay", [&](plan::Bucket &b) { b.set_decay_end(b.decay_end() + uint64_t(by)); });
    damage("a frozen bucket", [](plan::Bucket &b) { b.set_gradient_buffer(-1); });
    if (plan.buckets(i).state_buffers_size() == 2)
      damage("a state forgotten", [](plan::Bucket &b) { b.mutable_state_buffers()->RemoveLast(); });
    for (int j = 0; j < plan.buckets_size(); ++j) {
      if (j == i)
        continue;
      damage("another bucket's parameters",
             [&](plan::Bucket &b) { b.set_parameter_buffer(plan.buckets(j).parameter_buffer()); });
      damage("another bucket's gradients",
             [&](plan::Bucket &b) { b.set_gradient_buffer(plan.buckets(j).gradient_buffer()); });
    }
  }
}

void eachParameterDamage(const plan::Plan &plan, VisitDamage visit) {
  for (int i = 0; i < plan.parameters_size(); ++i) {
    auto damage = [&](StringRef kind, function_ref<void(plan::Parameter &)> apply) {
      visit(
          kind, [&] { return plan.parameters(i).name(); }, [&](plan::Plan &p) { apply(*p.mutable_parameters(i)); });
    };
    for (int64_t by : {-64, -1, 1, 64})
      damage("shift a parameter", [&](plan::Parameter &p) { p.set_offset(p.offset() + uint64_t(by)); });
    if (plan.parameters(i).dims_size())
      damage("wrong size of a parameter", [](plan::Parameter &p) { p.set_dims(0, p.dims(0) - 1); });
    damage("a parameter of another bucket",
           [&](plan::Parameter &p) { p.set_bucket((p.bucket() + 1) % uint32_t(plan.buckets_size())); });
  }
}

} // namespace

void eachTableDamage(const plan::Plan &plan, VisitDamage visit) {
  eachBucketDamage(plan, visit);
  eachParameterDamage(plan, visit);
  auto damage = [&](StringRef kind, const std::string &where, function_ref<void(plan::Plan &)> apply) {
    visit(kind, [&] { return where; }, apply);
  };
  for (uint32_t zero = 0; zero <= 3; ++zero)
    if (zero != plan.zero() && plan.ranks() > 1)
      damage("another stage", std::to_string(zero), [&](plan::Plan &p) { p.set_zero(zero); });
  for (uint32_t ranks : {1u, 2u, 3u, 4u, 8u})
    if (ranks != plan.ranks())
      damage("another number of ranks", std::to_string(ranks), [&](plan::Plan &p) { p.set_ranks(ranks); });
  for (uint64_t k : {1, 2, 3})
    if (k != std::min<uint64_t>(plan.accumulate(), 3))
      damage("another number of micro-steps", std::to_string(k), [&](plan::Plan &p) { p.set_accumulate(k); });
  for (int i = 0; i < plan.programs_size(); ++i) {
    const std::string &name = plan.programs(i).name();
    damage("drop a program", name, [&](plan::Plan &p) { p.mutable_programs()->DeleteSubrange(i, 1); });
    for (int j = 0; j < plan.programs_size(); ++j)
      if (j != i)
        damage("another program's commands", name, [&](plan::Plan &p) {
          *p.mutable_programs(i)->mutable_commands() = plan.programs(j).commands();
        });
  }
  for (int i = 0; i < plan.inputs_size(); ++i)
    if (plan.inputs(i).low() < plan.inputs(i).high())
      damage("an index more than there are rows", plan.inputs(i).name(),
             [&](plan::Plan &p) { p.mutable_inputs(i)->set_high(p.inputs(i).high() + 1); });
  for (int i = 0; i < plan.outputs_size(); ++i) {
    std::string name = plan.outputs(i).program() + " " + plan.outputs(i).name();
    damage("an output too old", name, [&](plan::Plan &p) {
      p.mutable_outputs(i)->mutable_ref()->set_version(p.outputs(i).ref().version() + 1);
    });
    for (int j = 0; j < plan.programs_size(); ++j)
      if (plan.programs(j).name() != plan.outputs(i).program())
        damage("an output of another program", name,
               [&](plan::Plan &p) { p.mutable_outputs(i)->set_program(plan.programs(j).name()); });
  }
}

} // namespace shardc
