// SPDX-License-Identifier: Apache-2.0
#include "ir/base/ScalarRows.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {
namespace {

bool joins(ScalarCode code) { return code >= ScalarCode::RowSum && code <= ScalarCode::ColumnSum; }

} // namespace

std::vector<RowKind> rowKinds(const ScalarProgram &program) {
  std::vector<RowKind> kinds;
  for (const ScalarInstr &instr : program.code) {
    RowKind kind = RowKind::Number;
    if (instr.code == ScalarCode::Input || instr.code == ScalarCode::Keep)
      kind = RowKind::Element;
    else if (instr.code == ScalarCode::RowSum || instr.code == ScalarCode::RowMax)
      kind = RowKind::Row;
    else if (instr.code == ScalarCode::ColumnSum)
      kind = RowKind::Column;
    else
      for (int16_t arg : instr.args)
        if (arg >= 0)
          kind = std::max(kind, kinds[arg]);
    kinds.push_back(kind);
  }
  return kinds;
}

bool joinsElements(const ScalarProgram &program) {
  return llvm::any_of(program.code, [](const ScalarInstr &instr) { return joins(instr.code); });
}

std::string checkRows(const ScalarProgram &program) {
  const std::vector<RowKind> kinds = rowKinds(program);
  for (const ScalarInstr &instr : program.code)
    for (int16_t arg : instr.args) {
      if (arg < 0)
        continue;
      if (kinds[arg] == RowKind::Column)
        return "a use of a colsum: got one, wanted it as a result only";
      if (joins(instr.code) && kinds[arg] != RowKind::Element)
        return "a sum or maximum: got one of a number, wanted one of elements";
    }
  for (int16_t output : program.outputs)
    if (kinds[output] == RowKind::Number)
      return "a result: got a mere number, wanted something of an operand";
  return "";
}

} // namespace shardc
