// SPDX-License-Identifier: Apache-2.0
// How a value lies in memory: views (reshape, transpose, slice, expand) are other strides over the same bytes.
#pragma once

#include "ir/ops/OpDef.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// `root` is what a non-view op defined; element [i0, i1 ...] of the value is root's element
/// offset + rank * rankStride + sum(i * stride). Strides count elements; 0 where a dim is broadcast.
struct Layout {
  Value *root = nullptr;
  int64_t offset = 0;
  Dims strides;
  int64_t rankStride = 0; ///< not 0: a slice of a sharded array
};

/// Row-major in its own memory.
Layout ownLayout(Value *value);
/// Of a view op's result, given its operand's; nullopt if these strides cannot express it (a reshape that merges dims that
/// are not adjacent): then the operand must be copied first.
std::optional<Layout> viewLayout(const Op &view, const Layout &operand);
/// Of a reshape: strides of the dims `to`, given those of `from`; nullopt where it merges dims that are not adjacent in memory.
std::optional<Dims> reshapeStrides(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> to);
/// Does `layout` fit what `allowed` (Layouts bits of OpDef) says for a value of these dims? Strides of dims of size 1 do not matter.
bool layoutFits(const Layout &layout, llvm::ArrayRef<int64_t> dims, uint8_t allowed);
/// What operand `i` of an op of that kind may look like: OpDef::layouts; row-major, though, where a result may take its memory, unless
/// any strides are allowed.
uint8_t allowedLayouts(const OpDef &def, unsigned i);

} // namespace shardc
