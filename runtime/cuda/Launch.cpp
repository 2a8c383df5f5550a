// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Launch.h"
#include "runtime/host/Strided.h"

namespace shardc::cuda {

static_assert(Walk::kMaxRank == host::kMaxRank);
static_assert(int(DType::F32) == int(ElementType::F32) && int(DType::F64) == int(ElementType::F64) &&
              int(DType::F16) == int(ElementType::F16) && int(DType::BF16) == int(ElementType::BF16) &&
              int(DType::I32) == int(ElementType::I32) && int(DType::I64) == int(ElementType::I64) &&
              int(DType::U8) == int(ElementType::U8) && int(DType::Bool) == int(ElementType::Bool));

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

bool aligned(const host::Array &a, int64_t bytes) {
  if (!aligned(a.data, bytes))
    return false;
  for (size_t i = 0; i + 1 < a.dims.size(); ++i)
    if (a.dims[i] > 1 && a.strides[i] * byteSize(a.dtype) % bytes)
      return false;
  return true;
}

bool checkFloat(host::Checks &c, const host::Array &a, llvm::StringRef what) {
  return c.that(isFloat(a.dtype), what.str() + ": type: got " + toString(a.dtype).str() + ", wanted a float type");
}

bool checkStatistic(host::Checks &c, const host::Array &a, DType stored, llvm::StringRef what) {
  return c.that(a.dtype == stored || (a.dtype == DType::F32 && byteSize(stored) == 2),
                what.str() + ": type: got " + toString(a.dtype).str() + ", wanted " + toString(stored).str() +
                    (byteSize(stored) == 2 ? " or f32" : ""));
}

} // namespace shardc::cuda
