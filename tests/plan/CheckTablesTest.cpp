// SPDX-License-Identifier: Apache-2.0
// What Check says of sizes, indices and tables: each kind of damage is refused, with the words that say where.
#include "tests/plan/Refused.h"
#include "tests/plan/SmallPlan.h"

using namespace llvm;

namespace shardc {
namespace {

plan::Buffer &buffer(plan::Plan &plan, int i) { return *plan.mutable_buffers(i); }
plan::Region &region(plan::Plan &plan, int i) { return *plan.mutable_spaces(0)->mutable_regions(i); }

TEST(Check, Regions) {
  const Damage list[] = {
      {"no name", [](plan::Plan &p) { region(p, 0).clear_name(); },
       "space 0: region '': wanted a name of its own"},
      {"one name for two", [](plan::Plan &p) { region(p, 1).set_name("persistent"); },
       "space 0: region 'persistent': wanted a name of its own"},
      {"a hole", [](plan::Plan &p) { region(p, 0).set_bytes(1280); },
       "region 'step': got bytes [1536, +768), wanted a multiple of 256 from 1280 on, at most to 2304"},
      {"beyond the space", [](plan::Plan &p) { region(p, 1).set_bytes(1024); },
       "region 'step': got bytes [1536, +1024)"},
      {"an end that overflows", [](plan::Plan &p) { region(p, 1).set_bytes(-256); }, "region 'step': got bytes"},
      {"off the grid", [](plan::Plan &p) { region(p, 0).set_bytes(1500); }, "region 'persistent': got bytes"},
      {"an empty one", [](plan::Plan &p) { region(p, 0).set_bytes(0); }, "region 'persistent': got bytes"},
      {"not the whole space", [](plan::Plan &p) { p.mutable_spaces(0)->mutable_regions()->RemoveLast(); },
       "space 0: regions: got 1536 bytes in all, wanted 2304"},
      {"a buffer across a border",
       [](plan::Plan &p) {
         buffer(p, kLoss).set_bytes(512);
         for (int b : {kY, kEvalY})
           buffer(p, b).set_offset(2048);
         buffer(p, kGradients).set_offset(2304);
         p.mutable_spaces(0)->set_bytes(2560);
         region(p, 1).set_bytes(1024);
         p.mutable_spaces(0)->set_lower_bound(2304);
       },
       "buffer 6 (loss_sum): beyond the end of space 0: region 'persistent'"},
      {"lower bound of another plan", [](plan::Plan &p) { region(p, 1).set_lower_bound(768); },
       "space 0: region 'step': lower bound: got 768, wanted 512"},
  };
  expectRefused(regionPlan, list);
}

TEST(Check, Bounds) {
  const Damage list[] = {
      {"no ranks", [](plan::Plan &p) { p.set_ranks(0); }, "plan: ranks: got 0, wanted 1 to 65536"},
      {"buffer of no space", [](plan::Plan &p) { buffer(p, kY).set_space(1); },
       "buffer 7 (y): no such space: got 1"},
      {"buffer off its grid", [](plan::Plan &p) { buffer(p, kY).set_offset(1540); },
       "not aligned: got offset 1540, wanted a multiple of 256"},
      {"buffer beyond the space", [](plan::Plan &p) { buffer(p, kY).set_offset(4096); },
       "outside its space"},
      {"sizes that overflow", [](plan::Plan &p) { buffer(p, kY).set_bytes(UINT64_MAX - 100); },
       "outside its space"},
      {"space of wasted memory", [](plan::Plan &p) { p.mutable_spaces(0)->set_bytes(1 << 20); },
       "space 0: not the size of what is in it"},
      {"lower bound of another plan",
       [](plan::Plan &p) { p.mutable_spaces(0)->set_lower_bound(256); },
       "space 0: lower bound: got 256, wanted 2048"},
      {"no such buffer", [](plan::Plan &p) { command(p, 0, 1).mutable_inputs(0)->set_buffer(99); },
       "train: command 1 (fused): input 0: no such buffer: got 99"},
      {"operand too large",
       [](plan::Plan &p) { command(p, 0, 1).mutable_inputs(0)->set_dims(0, 3); },
       "input 0: outside buffer 7 (y): got bytes [0, 36), wanted at most 24"},
      {"operand shifted", [](plan::Plan &p) { command(p, 0, 1).mutable_inputs(0)->set_offset(4); },
       "outside buffer 7 (y)"},
      {"negative stride before the start",
       [](plan::Plan &p) {
         command(p, 0, 1).mutable_inputs(0)->add_strides(-3);
         command(p, 0, 1).mutable_inputs(0)->add_strides(1);
       },
       "bytes below 0"},
      {"product of dims overflows",
       [](plan::Plan &p) {
         command(p, 0, 1).mutable_inputs(0)->set_dims(0, int64_t(1) << 40);
         command(p, 0, 1).mutable_inputs(0)->set_dims(1, int64_t(1) << 40);
       },
       "beyond 2^63"},
      {"negative dim", [](plan::Plan &p) { command(p, 0, 1).mutable_inputs(0)->set_dims(0, -2); },
       "outside buffer"},
      {"half a stride", [](plan::Plan &p) { command(p, 0, 1).mutable_inputs(0)->add_strides(1); },
       "number of strides: got 1, wanted 2"},
      {"unknown element type",
       [](plan::Plan &p) { command(p, 0, 1).mutable_inputs(0)->set_dtype(8); },
       "no such element type: got 8"},
      {"event that is not there", [](plan::Plan &p) { command(p, 0, 1).add_waits(0); },
       "no such event: got 0"},
      {"place that is not there", [](plan::Plan &p) { command(p, 0, 1).set_place(9); },
       "place or layer: no such string"},
      {"update work in training", [](plan::Plan &p) { command(p, 0, 1).set_phase(2); },
       "phase: got 2 in this program"},
      {"two programs of one name", [](plan::Plan &p) { p.mutable_programs(1)->set_name("train"); },
       "plan: programs: got 'train train eval', wanted 'train update eval'"},
      {"cost that is no number", [](plan::Plan &p) { command(p, 0, 1).set_flops(1.0 / 0.0); },
       "cost: wanted numbers from 0 to 1e30"},
  };
  expectRefused(smallPlan, list);
}

TEST(Check, Tables) {
  const Damage list[] = {
      {"parameter beyond its bucket", [](plan::Plan &p) { p.mutable_parameters(0)->set_offset(1); },
       "parameter layer.0.weight: outside bucket layer.0: got elements [1, +6), wanted at most 6"},
      {"two parameters in one place",
       [](plan::Plan &p) {
         *p.add_parameters() = p.parameters(0);
         p.mutable_parameters(1)->set_name("twin");
       },
       "overlaps parameter"},
      {"one name twice", [](plan::Plan &p) { *p.add_parameters() = p.parameters(0); },
       "the name is empty or used twice"},
      {"a tie named like a parameter",
       [](plan::Plan &p) { p.mutable_parameters(0)->add_ties("layer.0.weight"); },
       "the tied name is empty or used twice"},
      {"bucket without memory", [](plan::Plan &p) { p.mutable_buckets(0)->set_elements(600); },
       "bucket layer.0: buffer 2 (layer.0): size: got 24 bytes, wanted at least 2400"},
      {"state that is not kept", [](plan::Plan &p) { buffer(p, kM).set_persistent(false); },
       "is of another kind"},
      {"two states in one buffer",
       [](plan::Plan &p) { p.mutable_buckets(0)->set_state_buffers(1, kM); }, "is used twice"},
      {"trained without gradients",
       [](plan::Plan &p) { p.mutable_buckets(0)->set_gradient_buffer(-1); },
       "trained, but bucket layer.0 has no gradients"},
      {"decay cuts a matrix", [](plan::Plan &p) { p.mutable_buckets(0)->set_decay_end(3); },
       "on the wrong side of its bucket's decay_end"},
      {"file bytes of another size",
       [](plan::Plan &p) {
         plan::ValueSource &s = *p.mutable_parameters(0)->mutable_source();
         s.set_kind(plan::ValueSource::FILE);
         s.set_file("w");
         s.set_length(20);
       },
       "source: got bytes [0, +20)"},
      {"input larger than its buffer", [](plan::Plan &p) { p.mutable_inputs(0)->set_dims(0, 200); },
       "input x: buffer 1 (x): size"},
      {"output of no program", [](plan::Plan &p) { p.mutable_outputs(0)->set_program("test"); },
       "output loss_sum: no such program: got 'test'"},
      {"output that dies too early",
       [](plan::Plan &p) {
         *p.mutable_outputs(0)->mutable_ref() = smallRef(kSquares, {2, 3});
       },
       "output loss_sum: buffer 8 (squares) ends before its program: got 3, wanted 4"},
      {"scalars too short", [](plan::Plan &p) { p.set_scalars_buffer(kX); },
       "scalars: buffer 1 (x) is of another kind"},
      {"constant larger than its buffer",
       [](plan::Plan &p) {
         buffer(p, kY).set_kind(plan::CONSTANT);
         buffer(p, kY).set_persistent(true);
         p.add_constants()->set_buffer(kY);
         p.mutable_constants(0)->set_data(std::string(25, 'x'));
       },
       "constant: buffer 7 (y): size: got 24 bytes, wanted at least 25"},
  };
  expectRefused(smallPlan, list);
}

} // namespace
} // namespace shardc
