// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/Mutations.h"
#include "tests/passes/Refit.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace shardc {
namespace {

using Commands = google::protobuf::RepeatedPtrField<plan::Command>;

bool isUpdate(const plan::Command &c) {
  return is_contained<StringRef>({"adamw", "adam", "sgd"}, c.kernel());
}

/// The done of a start, -1 if there is none.
int doneOf(const Commands &list, int start) {
  for (int i = start + 1; i < list.size(); ++i)
    if (list[i].kernel() == "collective_done" && list[i].waits_size() && list[start].signals_size() &&
        list[i].waits(0) == list[start].signals(0))
      return i;
  return -1;
}

class CollectiveDamage {
public:
  CollectiveDamage(const plan::Plan &plan, VisitDamage visit) : plan_(plan), visit_(visit) {}

  void run() {
    for (p_ = 0; p_ < plan_.programs_size(); ++p_) {
      const Commands &list = plan_.programs(p_).commands();
      int previous = -1;
      for (i_ = 0; i_ < list.size(); ++i_) {
        if (list[i_].communicator()) {
          damageStart(list, previous);
          previous = i_;
        }
        if (list[i_].communicator() || isUpdate(list[i_]))
          damageWork(list[i_]);
      }
    }
  }

private:
  void visit(StringRef kind, bool refit, function_ref<void(Commands &)> apply) {
    visit_(
        kind,
        [&] {
          return plan_.programs(p_).name() + " " + std::to_string(i_) + " " + plan_.programs(p_).commands(i_).kernel();
        },
        [&](plan::Plan &plan) {
          apply(*plan.mutable_programs(p_)->mutable_commands());
          if (!refit)
            return;
          refitLifetimes(plan);
          spreadBuffers(plan);
        });
  }

  void damageStart(const Commands &list, int previous) {
    int i = i_, done = doneOf(list, i);
    for (uint32_t communicator : {1u, 2u, 3u})
      if (communicator != list[i].communicator())
        visit("another communicator", false, [&](Commands &x) { x[i].set_communicator(communicator); });
    for (bool refit : {false, true}) {
      if (done >= 0)
        visit("drop a collective", refit, [&](Commands &x) {
          for (plan::Command &c : x)
            for (uint32_t event : x[i].waits())
              if (c.signals_size() && c.signals(0) == event)
                c.clear_signals();
          for (uint32_t event : x[done].signals())
            x[done - 1].add_signals(event);
          x.DeleteSubrange(done, 1);
          x.DeleteSubrange(i, 1);
        });
      if (previous >= 0) {
        visit("swap two collectives", refit, [&](Commands &x) { x.SwapElements(previous, i); });
        // What they work on changes places, events stay.
        visit("swap the work of two collectives", refit, [&](Commands &x) {
          plan::Command a = x[previous], b = x[i];
          x[previous] = b;
          x[i] = a;
          *x[previous].mutable_waits() = a.waits();
          *x[previous].mutable_signals() = a.signals();
          *x[i].mutable_waits() = b.waits();
          *x[i].mutable_signals() = b.signals();
        });
      }
      if (done >= 0 && done + 1 < list.size())
        visit("done one command late", refit, [&](Commands &x) { x.SwapElements(done, done + 1); });
      if (i > 0)
        visit("start one command early", refit, [&](Commands &x) { x.SwapElements(i - 1, i); });
    }
    if (done >= 0)
      visit_(
          "free before the done", [&] { return plan_.programs(p_).name() + " " + std::to_string(i); },
          [&](plan::Plan &plan) {
            uint64_t position = uint64_t(i) + 1;
            for (int p = 0; p < p_; ++p)
              position += uint64_t(plan.programs(p).commands_size());
            for (const plan::Ref &ref : list[i].outputs())
              plan.mutable_buffers(int(ref.buffer()))->set_last(position);
          });
  }

  /// Its operands and attributes.
  void damageWork(const plan::Command &c) {
    int i = i_;
    for (int a = 0; a < c.attrs_size(); ++a)
      if (c.attrs(a).value_case() == plan::Attr::kI)
        for (int64_t by : {-1, 1})
          visit("wrong " + c.attrs(a).name(), false,
                [&](Commands &x) { x[i].mutable_attrs(a)->set_i(x[i].attrs(a).i() + by); });
    for (int k = 0; k < c.inputs_size(); ++k) {
      if (c.inputs(k).absent())
        continue;
      const plan::Buffer &mine = plan_.buffers(int(c.inputs(k).buffer()));
      for (int b = 0; b < plan_.buffers_size(); ++b) {
        const plan::Buffer &other = plan_.buffers(b);
        if (&mine == &other || other.kind() != mine.kind() || other.bytes() != mine.bytes() || mine.kind() == plan::SCALAR)
          continue;
        for (bool refit : {false, true})
          visit("another bucket's array", refit, [&](Commands &x) { x[i].mutable_inputs(k)->set_buffer(uint32_t(b)); });
        for (int o = 0; o < c.outputs_size(); ++o)
          if (c.outputs(o).buffer() == c.inputs(k).buffer())
            visit("another bucket's array", true, [&](Commands &x) {
              x[i].mutable_inputs(k)->set_buffer(uint32_t(b));
              x[i].mutable_outputs(o)->set_buffer(uint32_t(b));
            });
      }
    }
  }

  const plan::Plan &plan_;
  VisitDamage visit_;
  int p_ = 0, i_ = 0;
};

} // namespace

void eachCollectiveDamage(const plan::Plan &plan, VisitDamage visit) { CollectiveDamage(plan, visit).run(); }

} // namespace shardc
