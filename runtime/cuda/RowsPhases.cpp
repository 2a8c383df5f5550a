// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/RowsPhases.h"

namespace shardc::cuda {

RowsPhases::RowsPhases(const host::RowsProgram &program)
    : p_(program), code_(program.program.code), levels_(code_.size(), 0), first_(code_.size(), ~0u), kept_(code_.size(), false) {
  for (size_t i = 0; i < code_.size(); ++i) {
    for (int16_t arg : code_[i].args)
      if (arg >= 0)
        levels_[i] = std::max(levels_[i], levels_[arg]);
    levels_[i] += isJoin(i);
    if (p_.used[i])
      last_ = std::max(last_, levels_[i]);
  }
  for (unsigned level = 0; level <= last_; ++level)
    for (size_t i : neededAt(level))
      if (first_[i] == ~0u)
        first_[i] = level;
      else if (!isCheap(i))
        kept_[i] = true;
}

bool RowsPhases::isCheap(size_t i) const {
  const ScalarInstr &instr = code_[i];
  return instr.code == ScalarCode::Input ||
         (instr.code == ScalarCode::Convert && code_[instr.args[0]].code == ScalarCode::Input && isFloat(instr.dtype));
}

std::vector<size_t> RowsPhases::neededAt(unsigned level) const {
  std::vector<bool> needed(code_.size(), false);
  auto want = [&](int16_t reg) {
    if (p_.kinds[reg] == RowKind::Element)
      needed[reg] = true;
  };
  for (size_t i = 0; i < code_.size(); ++i)
    if (p_.used[i] && (isJoin(i) || code_[i].code == ScalarCode::ColumnSum) && levels_[code_[i].args[0]] == level)
      want(code_[i].args[0]);
  for (int16_t output : p_.program.outputs)
    if (levels_[output] == level)
      want(output);
  std::vector<size_t> list;
  for (size_t i = code_.size(); i-- > 0;) {
    if (!needed[i])
      continue;
    list.push_back(i);
    const bool isThere = !isCheap(i) && first_[i] < level;
    for (int16_t arg : code_[i].args)
      if (arg >= 0 && !isThere)
        want(arg);
  }
  std::reverse(list.begin(), list.end());
  return list;
}

unsigned RowsPhases::keptNumbers() const {
  unsigned count = 0;
  for (size_t i = 0; i < code_.size(); ++i)
    count += p_.used[i] && (kept_[i] || code_[i].code == ScalarCode::Keep || code_[i].code == ScalarCode::ColumnSum);
  return count;
}

} // namespace shardc::cuda
