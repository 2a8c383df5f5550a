// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Positions.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cassert>

using namespace llvm;

namespace shardc {

Positions::Positions(const plan::Plan &plan) : plan_(plan), starts_{0} {
  for (const plan::Program &program : plan.programs()) {
    for (const plan::Command &command : program.commands())
      commands_.push_back(&command);
    starts_.push_back(commands_.size());
  }
}

int Positions::programIndex(uint64_t position) const {
  assert(position < size());
  return int(llvm::upper_bound(starts_, position) - starts_.begin()) - 1;
}

std::string Positions::describe(uint64_t position) const {
  const plan::Command &c = command(position);
  std::string text = printable(plan_.programs(programIndex(position)).name()) + " command " + utostr(position) + " (" +
                     phaseName(c.phase()).str() + "), " + printable(c.kernel());
  StringRef place = plan_.strings(c.place());
  return place.empty() ? text : text + ", " + printable(place);
}

/// Calls touch(buffer, reads, writes, isWorkspace) for each operand that is there.
template <typename Visit> static void visitOperands(const plan::Command &command, Visit visit) {
  for (const plan::Ref &ref : command.inputs())
    if (!ref.absent())
      visit(ref.buffer(), true, false, false);
  for (const plan::Ref &ref : command.outputs())
    if (!ref.absent())
      visit(ref.buffer(), false, true, false);
  if (command.has_workspace() && !command.workspace().absent())
    visit(command.workspace().buffer(), false, true, true);
}

std::vector<Life> livesOf(const plan::Plan &plan) {
  std::vector<Life> lives(plan.buffers_size());
  std::vector<uint64_t> read(plan.buffers_size(), Life::kNone), written = read; // by which command last
  uint64_t position = 0;
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &command : program.commands()) {
      visitOperands(command, [&](uint32_t buffer, bool reads, bool writes, bool) {
        Life &life = lives[buffer];
        if (reads && std::exchange(read[buffer], position) != position) {
          life.lastReader = position;
          ++life.reads;
        }
        if (writes && std::exchange(written[buffer], position) != position) {
          if (life.producer == Life::kNone)
            life.producer = position;
          ++life.writes;
        }
      });
      ++position;
    }
  return lives;
}

std::vector<Touch> touchesOf(const plan::Plan &plan, uint32_t buffer) {
  std::vector<Touch> touches;
  uint64_t position = 0;
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &command : program.commands()) {
      Touch touch{position++, false, false, false};
      visitOperands(command, [&](uint32_t operand, bool reads, bool writes, bool isWorkspace) {
        if (operand != buffer)
          return;
        touch.reads |= reads;
        touch.writes |= writes;
        touch.isWorkspace |= isWorkspace;
      });
      if (touch.reads || touch.writes)
        touches.push_back(touch);
    }
  return touches;
}

StringRef phaseName(uint32_t phase) {
  constexpr const char *kPhases[] = {"forward", "backward", "update"};
  return phase < std::size(kPhases) ? kPhases[phase] : "?";
}

} // namespace shardc
