// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Strided.h"

namespace shardc::host {

void collapse(Dims &dims, llvm::MutableArrayRef<Dims> strides) {
  Dims newDims;
  llvm::SmallVector<Dims, 4> newStrides(strides.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1)
      continue;
    bool merges = !newDims.empty();
    for (size_t k = 0; merges && k < strides.size(); ++k)
      merges = newStrides[k].back() == strides[k][i] * dims[i];
    if (merges) {
      newDims.back() *= dims[i];
      for (size_t k = 0; k < strides.size(); ++k)
        newStrides[k].back() = strides[k][i];
    } else {
      newDims.push_back(dims[i]);
      for (size_t k = 0; k < strides.size(); ++k)
        newStrides[k].push_back(strides[k][i]);
    }
  }
  if (newDims.empty()) {
    newDims.push_back(1);
    for (Dims &s : newStrides)
      s.push_back(1);
  }
  dims = newDims;
  for (size_t k = 0; k < strides.size(); ++k)
    strides[k] = newStrides[k];
}

Walk Walk::of(Dims dims, Dims strides) {
  collapse(dims, strides);
  Walk walk;
  walk.rank = dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    walk.dims[i] = dims[i];
    walk.strides[i] = strides[i];
  }
  return walk;
}

} // namespace shardc::host
