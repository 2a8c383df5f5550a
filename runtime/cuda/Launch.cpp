// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Launch.h"
#include "runtime/host/Strided.h"

namespace shardc::cuda {

static_assert(Walk::kMaxRank == host::kMaxRank);

Walk walkOf(llvm::ArrayRef<int64_t> allDims, llvm::ArrayRef<int64_t> allStrides) {
  Dims dims(allDims.begin(), allDims.end()), strides(allStrides.begin(), allStrides.end());
  host::collapse(dims, strides);
  Walk walk;
  walk.rank = dims.size();
  const int64_t count = numElements(dims);
  for (int d = 0; d < walk.rank; ++d) {
    walk.dims[d] = Divider(std::max<int64_t>(1, dims[walk.rank - 1 - d]), count);
    walk.strides[d] = strides[walk.rank - 1 - d];
  }
  return walk;
}

Walk rowWalk(const host::Array &a, size_t rowRank) {
  return walkOf(llvm::ArrayRef(a.dims).drop_back(rowRank), llvm::ArrayRef(a.strides).drop_back(rowRank));
}

bool multiples(const Walk &walk, int64_t n) {
  for (int d = 0; d < walk.rank; ++d)
    if (walk.strides[d] % n != 0)
      return false;
  return true;
}

int64_t commonWidth(int64_t least, int64_t bytes, llvm::ArrayRef<const void *> addresses) {
  for (int64_t width = 16; width > least; width /= 2)
    if (bytes % width == 0 && llvm::all_of(addresses, [&](const void *p) { return aligned(p, width); }))
      return width;
  return least;
}

bool floating(host::Checks &c, const host::Array &a) {
  return c.that(isFloat(a.dtype), "type: got " + toString(a.dtype).str() + ", wanted f32, f64, f16 or bf16");
}

} // namespace shardc::cuda
