// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/JoinedHeads.h"

namespace shardc::host {

/// Part `index` along dim 2.
static Array partOf(const Array &joined, int64_t index) {
  Array part = joined;
  part.data = joined.as<char>() + index * joined.strides[2] * byteSize(joined.dtype);
  part.dims.erase(part.dims.begin() + 2);
  part.strides.erase(part.strides.begin() + 2);
  return part;
}

Binding splitHeads(const Binding &binding) {
  Binding split = binding;
  const plan::Attr *attr = findAttr(binding.command->attrs(), "joined");
  const size_t first = !attr ? 3 : attr->s() == "qkv" ? 0 : attr->s() == "kv" ? 1 : 3;
  if (first == 3 || binding.out.size() <= first)
    return split;
  const Array &joined = binding.out[first];
  if (!joined || joined.dims.size() != 5 || joined.dims[2] != int64_t(3 - first))
    return split;
  llvm::SmallVector<Array, 3> parts;
  for (int64_t i = 0; i < joined.dims[2]; ++i)
    parts.push_back(partOf(joined, i));
  split.out.erase(split.out.begin() + first);
  split.out.insert(split.out.begin() + first, parts.begin(), parts.end());
  return split;
}

} // namespace shardc::host
