// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/OpDef.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

static constexpr const OpDef *kTable[] = {
#define SHARDC_OP(NAME) &k##NAME,
#include "ir/ops/Ops.def"
#undef SHARDC_OP
};

llvm::ArrayRef<const OpDef *> allOps() { return kTable; }

const OpDef *findOp(llvm::StringRef mnemonic) {
  static const llvm::StringMap<const OpDef *> kByName = [] {
    llvm::StringMap<const OpDef *> map;
    for (const OpDef *def : kTable)
      map[def->mnemonic] = def;
    return map;
  }();
  return kByName.lookup(mnemonic);
}

} // namespace shardc
