// SPDX-License-Identifier: Apache-2.0
// Plans for several ranks: sound ones pass at each stage; what a stage must do, and how ranks meet,
// is checked with words that say where.
#include "tests/plan/RankPlan.h"
#include "tests/plan/Refused.h"

using namespace llvm;

namespace shardc {
namespace {

/// Of a plan of its own.
struct RanksDamage {
  const char *name;
  plan::Plan (*make)();
  void (*apply)(plan::Plan &);
  const char *message;
};

void expectRefused(ArrayRef<RanksDamage> list) {
  for (const auto &[name, make, apply, message] : list)
    shardc::expectRefused(make(), Damage{name, apply, message});
}

template <unsigned ranks, unsigned stage, unsigned accumulate = 1> plan::Plan make() {
  return rankPlan(ranks, stage, accumulate);
}

plan::Command &at(plan::Plan &plan, StringRef program, StringRef kernel, int n = 0) {
  return *programOf(plan, program).mutable_commands(findCommand(plan, program, kernel, n));
}

/// The start and its done; what waits for the done waits for what stands before them.
void dropCollective(plan::Plan &plan, StringRef program, StringRef kernel, int n = 0) {
  int i = findCommand(plan, program, kernel, n);
  plan::Program &p = programOf(plan, program);
  for (uint32_t event : p.commands(i).waits())
    for (plan::Command &c : *p.mutable_commands())
      if (c.signals_size() && c.signals(0) == event)
        c.clear_signals();
  for (uint32_t event : p.commands(i + 1).signals())
    p.mutable_commands(i - 1)->add_signals(event);
  p.mutable_commands()->DeleteSubrange(i, 2);
  finishPlan(plan);
}

TEST(CheckRanks, SoundPlansPass) {
  for (unsigned ranks : {1, 2, 3, 4, 8})
    for (unsigned stage : {0, 1, 2, 3})
      for (unsigned accumulate : {1, 2, 3, 4})
        EXPECT_EQ(toString(checkPlan(rankPlan(ranks, stage, accumulate))), "")
            << ranks << " ranks, stage " << stage << ", accumulate " << accumulate;
}

TEST(CheckRanks, Slices) {
  expectRefused({
      {"slices beyond the buffer", make<2, 1>,
       [](plan::Plan &p) { at(p, "update", "fused").mutable_inputs(0)->set_offset(48); },
       "input 0: slices of the ranks: outside buffer 2 (w): got 2 x 48 bytes from 48 on"},
      {"a slice of another size", make<2, 1>,
       [](plan::Plan &p) { at(p, "update", "fused").mutable_inputs(0)->set_rank_stride(24); },
       "slice of a rank: got a stride of 24 bytes, wanted a dense operand of that size"},
      {"a stride that overflows", make<2, 1>,
       [](plan::Plan &p) {
         at(p, "update", "fused").mutable_inputs(0)->set_rank_stride(UINT64_MAX / 2);
       },
       "slice of a rank"},
      {"every rank updates the first slice", make<2, 1>,
       [](plan::Plan &p) {
         at(p, "update", "fused").mutable_inputs(0)->clear_rank_stride();
         at(p, "update", "fused").mutable_outputs(0)->clear_rank_stride();
       },
       "update: command 0 (fused): input 0: bytes [0, 48) of buffer 2 (w): wanted one "
       "parameter (a part of it with strides), adjacent ones, the whole bucket, or the rank's slice"},
      {"every rank has the first slice of the gradients", make<2, 1>,
       [](plan::Plan &p) { at(p, "update", "fused").mutable_inputs(1)->clear_rank_stride(); },
       "update: command 0 (fused): input 1: reads buffer 3 (g) before it is written"},
      {"the whole bucket where a rank has a slice only", make<2, 1>,
       [](plan::Plan &p) {
         plan::Command &c = at(p, "eval", "fused");
         c.mutable_inputs(1)->set_rank_stride(24);
       },
       "eval: command 0 (fused): input 1: bytes [0, 24) of buffer 2 (w): wanted one parameter"},
      {"buffers of another stage", make<2, 2>, [](plan::Plan &p) { p.set_zero(1); },
       "bucket layer.0: buffer 3 (g): size: got 48 bytes, wanted at least 96"},
      {"buffers of another number of ranks", make<2, 2>, [](plan::Plan &p) { p.set_ranks(4); },
       "slices of the ranks: outside buffer 2 (w): got 4 x 48 bytes from 0 on, wanted at most 96"},
      {"a gradient beside its parameter", make<2, 0>,
       [](plan::Plan &p) {
         at(p, "train", "fused", 3).mutable_outputs(0)->set_offset(72);
         finishPlan(p);
       },
       ""},
      {"a slice of what is no bucket", make<2, 0>,
       [](plan::Plan &p) {
         plan::Ref &x = *at(p, "train", "fused").mutable_inputs(0);
         x = smallRef(x.buffer(), {3});
         x.set_rank_stride(12);
       },
       "train: command 0 (fused): input 0: slice of a rank: buffer 1 (x) holds no bucket"},
      {"a part of an array that does not say so", make<2, 0>,
       [](plan::Plan &p) { at(p, "train", "fused", 1).mutable_inputs(0)->set_dims(0, 1); },
       "train: command 1 (fused): input 0: reads a part of buffer 6 (y) without strides: got 12 of "
       "24 bytes"},
      {"a part of a parameter that does not say so", make<2, 0>,
       [](plan::Plan &p) { at(p, "eval", "fused").mutable_inputs(1)->set_dims(0, 1); },
       "eval: command 0 (fused): input 1: bytes [0, 12) of buffer 2 (w): wanted one parameter (a "
       "part of it with strides)"},
      {"a gradient shifted inside the padding", make<2, 0>,
       [](plan::Plan &p) { at(p, "train", "fused", 3).mutable_outputs(0)->set_offset(4); }, ""},
  });
}

TEST(CheckRanks, Collectives) {
  expectRefused({
      {"of no communicator", make<2, 0>,
       [](plan::Plan &p) { at(p, "train", "all_reduce_start").set_communicator(0); },
       "communicator: got 0, wanted 1 to 3"},
      {"a communicator too many", make<2, 0>,
       [](plan::Plan &p) { at(p, "train", "all_reduce_start").set_communicator(4); },
       "communicator: got 4, wanted 1 to 3"},
      {"compute on a communicator", make<2, 0>,
       [](plan::Plan &p) { at(p, "train", "fused").set_communicator(1); },
       "communicator: got 1, wanted 0 to 0"},
      {"for other ranks", make<2, 0>,
       [](plan::Plan &p) { at(p, "train", "all_reduce_start").mutable_attrs(0)->set_i(3); },
       "attribute 'ranks': got 3, wanted 2"},
      {"of another size", make<2, 3>,
       [](plan::Plan &p) { at(p, "train", "all_gather_start").mutable_inputs(0)->set_dims(0, 6); },
       "sizes: got a slice of 6 elements and 24 in all, for 2 ranks"},
      {"of another type", make<2, 0>,
       [](plan::Plan &p) {
         at(p, "train", "all_reduce_start").mutable_inputs(0)->set_dtype(uint32_t(DType::I32));
       },
       "wanted flat arrays of one element type"},
      {"with gaps", make<2, 0>,
       [](plan::Plan &p) {
         for (plan::Ref *ref : {at(p, "train", "all_reduce_start").mutable_inputs(0),
                                at(p, "train", "all_reduce_start").mutable_outputs(0)}) {
           ref->set_dims(0, 12);
           ref->add_strides(2);
         }
       },
       "wanted flat arrays"},
      {"a sum somewhere else", make<2, 0>,
       [](plan::Plan &p) { at(p, "train", "all_reduce_start").clear_in_place(); },
       "wanted the sum over what it adds up"},
      {"a gather from slice 0 of its own result", make<2, 1>,
       [](plan::Plan &p) {
         at(p, "update", "all_gather_start").mutable_inputs(0)->clear_rank_stride();
       },
       "output 0 overlaps input 0"},
      {"a gather from another slice of its own result", make<4, 1>,
       [](plan::Plan &p) { at(p, "update", "all_gather_start").mutable_inputs(0)->set_offset(24); },
       "outside buffer"},
      {"a reduction into slice 0 of what it adds up", make<2, 1>,
       [](plan::Plan &p) {
         at(p, "train", "reduce_scatter_start").mutable_outputs(0)->clear_rank_stride();
       },
       "wanted slice r of what it adds up"},
      {"a reduction in place that does not say so", make<2, 1>,
       [](plan::Plan &p) { at(p, "train", "reduce_scatter_start").mutable_attrs(1)->set_i(0); },
       "wanted an array of its own for the sum"},
      {"on one communicator, but not ordered", make<2, 0>,
       [](plan::Plan &p) {
         at(p, "train", "all_reduce_start", 1).set_stream(1);
         at(p, "train", "all_reduce_start", 1).clear_waits();
       },
       "does not wait for train: command 6 (all_reduce_start) of the same communicator"},
  });
}

TEST(CheckRanks, StartsAndDones) {
  expectRefused({
      {"no done", make<2, 3>,
       [](plan::Plan &p) { at(p, "train", "collective_done").set_kernel("copy"); },
       "waits for a collective by itself, wanted a collective_done"},
      {"a done without its wait", make<2, 3>,
       [](plan::Plan &p) { at(p, "train", "collective_done").clear_waits(); },
       "wanted to wait for the event of one start"},
      {"a done of another start", make<2, 0>,
       [](plan::Plan &p) {
         at(p, "train", "collective_done", 1)
             .set_waits(0, at(p, "train", "collective_done").waits(0));
       },
       "wanted to wait for the event of one start"},
      {"a done in the next program", make<2, 1>,
       [](plan::Plan &p) {
         plan::Program &train = programOf(p, "train"), &update = programOf(p, "update");
         plan::Command done = train.commands(train.commands_size() - 1);
         train.mutable_commands()->RemoveLast();
         done.set_phase(2);
         *update.add_commands() = done;
       },
       "waits for event"},
      {"no done at all", make<2, 1>,
       [](plan::Plan &p) { programOf(p, "train").mutable_commands()->RemoveLast(); },
       "no collective_done waits for it"},
      {"no signal", make<2, 3>,
       [](plan::Plan &p) { at(p, "train", "all_gather_start").clear_signals(); },
       "waits for event 1, which nothing before it signals"},
      {"memory freed before the done", make<2, 2>,
       [](plan::Plan &p) { bufferOf(p, "g.whole").set_last(bufferOf(p, "g.whole").last() - 2); },
       "(g.whole) ends while train: command"},
      {"a start before its data", make<2, 2>,
       [](plan::Plan &p) { at(p, "train", "reduce_scatter_start").clear_waits(); }, "reads buffer"},
      {"a signal that nobody waits for", make<2, 0>,
       [](plan::Plan &p) {
         p.set_events(p.events() + 1);
         at(p, "eval", "fused").add_signals(p.events() - 1);
       },
       "which nothing waits for"},
      {"a read before the done", make<2, 3>,
       [](plan::Plan &p) {
         auto &list = *programOf(p, "train").mutable_commands();
         list.SwapElements(1, 2);
         finishPlan(p);
       },
       "without waiting for train: command 0 (all_gather_start)"},
  });
}

TEST(CheckRanks, Programs) {
  expectRefused({
      {"more micro-steps than programs", make<2, 0>, [](plan::Plan &p) { p.set_accumulate(2); },
       "plan: programs: got 'train update eval', wanted 'train_first train_last update eval'"},
      {"no middle", make<2, 0, 2>, [](plan::Plan &p) { p.set_accumulate(3); },
       "wanted 'train_first train_middle train_last update eval'"},
      {"no update", make<2, 0>, [](plan::Plan &p) { p.mutable_programs()->DeleteSubrange(1, 1); },
       "plan: programs: got"},
      {"what the middle needs again is gone", make<2, 0, 4>,
       [](plan::Plan &p) {
         // It ends where train_middle reads it for the first time; train_last makes its own.
         plan::Buffer &b = *p.add_buffers();
         b.set_name("kept");
         b.set_bytes(24);
         uint32_t kept = uint32_t(p.buffers_size() - 1);
         at(p, "train_first", "fused", 1).mutable_outputs(0)->set_buffer(kept);
         at(p, "train_first", "reduce_sum").mutable_inputs(0)->set_buffer(kept);
         at(p, "train_middle", "reduce_sum").mutable_inputs(0)->set_buffer(kept);
         finishPlan(p);
       },
       "(kept): lifetime [1, 9) ends inside train_middle, which runs again"},
      {"a loss before the last micro-step", make<2, 0, 2>,
       [](plan::Plan &p) { p.mutable_outputs(0)->set_program("train_first"); },
       "output loss_sum: belongs to no whole step or evaluation: got train_first"},
      {"no loss", make<2, 0>, [](plan::Plan &p) { p.mutable_outputs(1)->set_name("sum"); },
       "program eval: has no output loss_sum"},
      {"two outputs in one place", make<2, 0>,
       [](plan::Plan &p) {
         *p.add_outputs() = p.outputs(0);
         p.mutable_outputs(2)->set_name("loss_count");
       },
       "outputs loss_sum and loss_count of train: share memory"},
      {"exposed time that is no number", make<2, 0>, [](plan::Plan &p) { p.set_exposed_ms(-1); },
       "plan: exposed_ms: wanted a number from 0 to 1e30"},
  });
}

TEST(CheckRanks, Training) {
  expectRefused({
      {"not reduced at stage 0", make<2, 0>,
       [](plan::Plan &p) { dropCollective(p, "train", "all_reduce_start"); },
       "bucket layer.0: train: its gradients are not reduced over the ranks"},
      {"not reduced at stage 1", make<2, 1, 3>,
       [](plan::Plan &p) { dropCollective(p, "train_last", "reduce_scatter_start"); },
       "bucket layer.0: train_last: its gradients are not reduced over the ranks"},
      {"not reduced at stage 2", make<2, 2, 2>,
       [](plan::Plan &p) { dropCollective(p, "train_last", "reduce_scatter_start"); },
       "train_last: command"},
      {"reduced twice", make<2, 0>,
       [](plan::Plan &p) {
         *at(p, "train", "all_reduce_start", 1).mutable_inputs(0) =
             at(p, "train", "all_reduce_start").inputs(0);
         *at(p, "train", "all_reduce_start", 1).mutable_outputs(0) =
             at(p, "train", "all_reduce_start").outputs(0);
         finishPlan(p);
       },
       "reduces its gradients: wanted one reduction"},
      {"reduced in an early micro-step", make<2, 0, 2>,
       [](plan::Plan &p) {
         // Moved from the last one: as if it were accumulated afterwards.
         plan::Program &first = programOf(p, "train_first");
         int i = findCommand(p, "train_last", "all_reduce_start");
         plan::Command start = programOf(p, "train_last").commands(i),
                       done = programOf(p, "train_last").commands(i + 1);
         dropCollective(p, "train_last", "all_reduce_start");
         done.clear_signals();
         first.mutable_commands(first.commands_size() - 1)->add_signals(start.waits(0));
         *first.add_commands() = start;
         *first.add_commands() = done;
         finishPlan(p);
       },
       "bucket layer.0: train_first: train_first: command 6 (all_reduce_start) reduces its "
       "gradients: wanted none here"},
      {"earlier micro-steps forgotten", make<2, 0, 2>,
       [](plan::Plan &p) {
         at(p, "train_last", "fused", 3).mutable_inputs(2)->set_buffer(1);
         at(p, "train_last", "fused", 3).clear_in_place();
         finishPlan(p);
       },
       "fused writes over the gradients of earlier micro-steps"},
      {"earlier slices forgotten", make<2, 3, 2>,
       [](plan::Plan &p) {
         plan::Command &sum = at(p, "train_last", "fused", 5);
         *sum.mutable_inputs(0) = sum.inputs(1);
         sum.clear_in_place();
         finishPlan(p);
       },
       "wanted the reduced slice added to that of earlier micro-steps"},
      {"gradients of another micro-step", make<2, 2, 2>,
       [](plan::Plan &p) {
         uint32_t first = at(p, "train_first", "reduce_scatter_start").inputs(0).buffer();
         at(p, "train_last", "reduce_scatter_start").mutable_inputs(0)->set_buffer(first);
         finishPlan(p);
       },
       "(g.whole) lives longer than train_first, wanted gradients of this micro-step"},
      {"never gathered", make<2, 2>,
       [](plan::Plan &p) { dropCollective(p, "update", "all_gather_start"); },
       "bucket layer.0: after update each rank has only its slice of buffer 2 (w)"},
      {"updated twice", make<2, 0>,
       [](plan::Plan &p) {
         *programOf(p, "update").add_commands() = programOf(p, "update").commands(0);
         finishPlan(p);
       },
       "bucket layer.0: update: got 2 commands that update its parameters, wanted 1"},
      {"updated with something else", make<2, 0>,
       [](plan::Plan &p) { at(p, "update", "fused").mutable_inputs(1)->set_buffer(2); },
       "does not read the gradients"},
      {"one rank's part of the update", make<2, 0>,
       [](plan::Plan &p) {
         plan::Command &c = at(p, "update", "fused");
         for (plan::Ref *ref : {c.mutable_inputs(0), c.mutable_inputs(1), c.mutable_outputs(0)})
           ref->set_dims(0, 6);
       },
       "works on another part of buffer 2 (w), wanted all of it"},
      {"gradients changed by the update", make<2, 0>,
       [](plan::Plan &p) {
         plan::Command &c = *programOf(p, "update").add_commands();
         c = programOf(p, "update").commands(0);
         *c.mutable_inputs(0) = c.inputs(1);
         *c.mutable_outputs(0) = c.inputs(1);
         finishPlan(p);
       },
       "bucket layer.0: update: writes gradients"},
  });
}

} // namespace
} // namespace shardc
