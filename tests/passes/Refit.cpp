// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/Refit.h"
#include "ir/plan/Peak.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace shardc {
namespace {

bool isTakenOver(const plan::Command &c, int input) {
  for (int i = 0; i < c.in_place_size() && i < c.outputs_size(); ++i)
    if (int(c.in_place(i)) == input + 1 && c.outputs(i).buffer() != c.inputs(input).buffer())
      return true;
  return false;
}

} // namespace

void refitSpace(plan::Plan &plan) {
  uint64_t end = 0;
  for (const plan::Buffer &b : plan.buffers())
    end = std::max(end, b.offset() + b.bytes());
  plan.mutable_spaces(0)->set_bytes(alignTo(end, kAlignment));
  plan.mutable_spaces(0)->clear_regions(); // they are another damage's business
  plan.mutable_spaces(0)->set_lower_bound(std::min(findPeak(plan, 0).bytes, plan.spaces(0).bytes()));
}

void refitLifetimes(plan::Plan &plan) {
  std::vector<std::pair<uint64_t, uint64_t>> lives(plan.buffers_size(), {UINT64_MAX, 0});
  uint64_t position = 0;
  for (const plan::Program &program : plan.programs()) {
    DenseMap<uint32_t, const plan::Command *> starts; // by event
    for (const plan::Command &c : program.commands()) {
      auto touch = [&](const plan::Ref &ref, uint64_t end) {
        if (ref.absent() || ref.buffer() >= lives.size())
          return;
        auto &[first, last] = lives[ref.buffer()];
        first = std::min(first, position);
        last = std::max(last, end);
      };
      auto touchAll = [&](const plan::Command &command) {
        for (int i = 0; i < command.inputs_size(); ++i)
          if (&command == &c)
            touch(command.inputs(i), position + !isTakenOver(command, i));
          else if (!isTakenOver(command, i))
            touch(command.inputs(i), position + 1);
        for (const plan::Ref &ref : command.outputs())
          touch(ref, position + 1);
        if (command.has_workspace())
          touch(command.workspace(), position + 1);
      };
      touchAll(c);
      if (c.communicator())
        for (uint32_t event : c.signals())
          starts[event] = &c;
      if (c.kernel() == "collective_done")
        for (uint32_t event : c.waits())
          if (const plan::Command *start = starts.lookup(event))
            touchAll(*start);
      ++position;
    }
    for (const plan::Output &output : plan.outputs())
      if (output.program() == program.name())
        lives[output.ref().buffer()].second = std::max(lives[output.ref().buffer()].second, position);
  }
  for (int b = 0; b < plan.buffers_size(); ++b) {
    plan::Buffer &buffer = *plan.mutable_buffers(b);
    auto [first, last] = lives[b];
    buffer.set_first(buffer.persistent() || first == UINT64_MAX ? 0 : first);
    buffer.set_last(buffer.persistent() ? position : first == UINT64_MAX ? 0 : last);
  }
}

void spreadBuffers(plan::Plan &plan) {
  std::vector<int> leader(plan.buffers_size());
  for (int b = 0; b < plan.buffers_size(); ++b)
    leader[b] = b;
  auto find = [&](int b) {
    while (leader[b] != b)
      b = leader[b];
    return b;
  };
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      for (int i = 0; i < c.inputs_size(); ++i)
        if (isTakenOver(c, i))
          for (int o = 0; o < c.in_place_size(); ++o)
            if (int(c.in_place(o)) == i + 1)
              leader[find(int(c.outputs(o).buffer()))] = find(int(c.inputs(i).buffer()));
  std::vector<uint64_t> bytes(plan.buffers_size(), 0), offsets(plan.buffers_size(), 0);
  for (int b = 0; b < plan.buffers_size(); ++b)
    bytes[find(b)] = std::max(bytes[find(b)], plan.buffers(b).bytes());
  uint64_t end = 0;
  for (int b = 0; b < plan.buffers_size(); ++b) {
    offsets[b] = end;
    end += alignTo(bytes[b], kAlignment);
  }
  for (int b = 0; b < plan.buffers_size(); ++b)
    plan.mutable_buffers(b)->set_offset(offsets[find(b)]);
}

} // namespace shardc
