// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/plan/Check.h"

using namespace llvm;

namespace shardc::check {
namespace {

/// In memory, be it in one buffer or in two.
bool overlap(const plan::Plan &plan, const plan::Ref &a, const plan::Ref &b) {
  return !a.absent() && !b.absent() &&
         plan.buffers(a.buffer()).space() == plan.buffers(b.buffer()).space() &&
         touchedAddresses(plan, a).overlaps(touchedAddresses(plan, b)) && !areSideBySide(plan, a, b);
}

/// A collective that works inside one buffer: a gather around the slice that it sends, a reduction
/// into a slice of what it adds up.
bool isInsideCollective(const plan::Plan &plan, const plan::Command &c, int input) {
  return (isGather(c) && input == 0 && isSliceOf(plan, c.inputs(0), c.outputs(0))) ||
         (isReduceScatter(c) && isSliceOf(plan, c.outputs(0), c.inputs(0)));
}

/// What a command writes may lie over what it reads only element by element, and only declared.
Error checkCommand(const plan::Plan &plan, const plan::Command &c, unsigned p, unsigned index) {
  auto fail = [&](const Twine &what) { return userError(describe(plan, p, index) + ": " + what); };
  bool scratch = c.has_workspace() && !c.workspace().absent();
  for (int i = 0; i < c.outputs_size(); ++i) {
    const plan::Ref &out = c.outputs(i);
    if (!elementsAreDisjoint(out))
      return fail("output " + Twine(i) + ": two elements share memory");
    for (int j = 0; j < i; ++j)
      if (overlap(plan, out, c.outputs(j)))
        return fail("outputs " + Twine(j) + " and " + Twine(i) + " overlap");
    if (scratch && overlap(plan, out, c.workspace()))
      return fail("output " + Twine(i) + " overlaps the workspace");
    unsigned over = i < c.in_place_size() ? c.in_place(i) : 0;
    if (over && !sameLayout(plan, out, c.inputs(over - 1)))
      return fail("output " + Twine(i) + " does not lie over input " + Twine(over - 1) +
                  ", which it is said to");
    for (int j = 0; j < c.inputs_size(); ++j)
      if (overlap(plan, out, c.inputs(j)) && !(over && sameLayout(plan, out, c.inputs(j))) &&
          !isInsideCollective(plan, c, j))
        return fail("output " + Twine(i) + " overlaps input " + Twine(j));
  }
  for (int j = 0; j < c.inputs_size(); ++j)
    if (scratch && overlap(plan, c.inputs(j), c.workspace()))
      return fail("input " + Twine(j) + " overlaps the workspace");
  return Error::success();
}

} // namespace

Error checkAliases(const plan::Plan &plan) {
  for (int p = 0; p < plan.programs_size(); ++p)
    for (int i = 0; i < plan.programs(p).commands_size(); ++i)
      if (Error error = checkCommand(plan, plan.programs(p).commands(i), p, i))
        return error;
  return Error::success();
}

} // namespace shardc::check
