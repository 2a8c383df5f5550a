// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/Mutations.h"

using namespace llvm;

namespace shardc {
namespace {

plan::Ref &refOf(plan::Command &c, int k) {
  if (k < c.inputs_size())
    return *c.mutable_inputs(k);
  k -= c.inputs_size();
  return k < c.outputs_size() ? *c.mutable_outputs(k) : *c.mutable_workspace();
}

class OperandDamage {
public:
  OperandDamage(const plan::Plan &plan, VisitDamage visit) : plan_(plan), visit_(visit) {}

  void run() {
    for (p_ = 0; p_ < plan_.programs_size(); ++p_)
      for (i_ = 0; i_ < plan_.programs(p_).commands_size(); ++i_)
        damageCommand(plan_.programs(p_).commands(i_));
  }

private:
  void damageCommand(const plan::Command &c) {
    int operands = c.inputs_size() + c.outputs_size() + c.has_workspace();
    for (int k = 0; k < operands; ++k) {
      const plan::Ref &ref = refOf(const_cast<plan::Command &>(c), k);
      if (!ref.absent())
        damageRef(ref, k, k >= c.inputs_size());
    }
    if (c.in_place_size())
      visit("overwrite without saying so", -1, [](plan::Command &x) { x.clear_in_place(); });
    for (int i = 0; i < c.in_place_size(); ++i)
      for (int input = 1; input <= c.inputs_size(); ++input)
        if (input != int(c.in_place(i)))
          visit("overwrite another operand", -1, [&](plan::Command &x) { x.set_in_place(i, uint32_t(input)); });
  }

  void visit(StringRef kind, int operand, function_ref<void(plan::Command &)> apply) {
    visit_(
        kind,
        [&] {
          return plan_.programs(p_).name() + " " + std::to_string(i_) + " " + plan_.programs(p_).commands(i_).kernel() +
                 " operand " + std::to_string(operand);
        },
        [&](plan::Plan &plan) { apply(*plan.mutable_programs(p_)->mutable_commands(i_)); });
  }

  void damageRef(const plan::Ref &ref, int k, bool write) {
    auto damage = [&](StringRef kind, function_ref<void(plan::Ref &)> apply) {
      visit(kind, k, [&](plan::Command &c) { apply(refOf(c, k)); });
    };
    plan::BufferKind kind = plan_.buffers(int(ref.buffer())).kind();
    bool inBucket = kind == plan::PARAMETER || kind == plan::GRADIENT || kind == plan::OPTIMIZER_STATE || kind == plan::COMMUNICATION;
    bool part = !write && !inBucket && ref.strides_size();
    int64_t size = byteSize(DType(ref.dtype()));
    StringRef shift = write ? "shift a result" : "shift an operand";
    for (int64_t by : {size, -size, 64 * size})
      if (int64_t(ref.offset()) + by >= 0)
        damage(part ? StringRef(kOtherPart) : !write && inBucket && by == 64 * size ? StringRef(kOtherParameter) : shift,
               [&](plan::Ref &x) { x.set_offset(uint64_t(int64_t(x.offset()) + by)); });
    if (ref.dims_size() && ref.dims(0) > 0)
      damage(part ? StringRef(kOtherPart) : "wrong size of an operand", [](plan::Ref &x) { x.set_dims(0, x.dims(0) - 1); });
    damage("another content meant", [](plan::Ref &x) { x.set_version(x.version() + 1); });
    if (ref.version())
      damage("another content meant", [](plan::Ref &x) { x.set_version(x.version() - 1); });
    if (uint64_t stride = ref.rank_stride()) {
      damage("the first slice on each rank", [](plan::Ref &x) { x.clear_rank_stride(); });
      damage("the next rank's slice", [&](plan::Ref &x) { x.set_offset(x.offset() + stride); });
      damage("slices that overlap", [&](plan::Ref &x) { x.set_rank_stride(stride / 2); });
      damage("slices with gaps", [&](plan::Ref &x) { x.set_rank_stride(stride + uint64_t(size)); });
    } else if (ref.dims_size() == 1) {
      damage("a slice where all is wanted", [&](plan::Ref &x) {
        x.set_dims(0, x.dims(0) / plan_.ranks());
        x.set_rank_stride(uint64_t(x.dims(0) * size));
      });
    }
  }

  const plan::Plan &plan_;
  VisitDamage visit_;
  int p_ = 0, i_ = 0;
};

} // namespace

void eachOperandDamage(const plan::Plan &plan, VisitDamage visit) { OperandDamage(plan, visit).run(); }

} // namespace shardc
