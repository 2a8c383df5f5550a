// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Movement.h"
#include "ir/base/Tensor.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstring>

namespace shardc {

std::optional<Scatter> parseScatter(llvm::StringRef text) {
  return llvm::StringSwitch<std::optional<Scatter>>(text)
      .Case("none", Scatter::None)
      .Case("add", Scatter::Add)
      .Case("mul", Scatter::Mul)
      .Case("max", Scatter::Max)
      .Case("min", Scatter::Min)
      .Default(std::nullopt);
}

AxisView::AxisView(llvm::ArrayRef<int64_t> dims, int64_t axis)
    : outer(numElements(dims.take_front(axis))), size(dims[axis]),
      inner(numElements(dims.drop_front(axis + 1))) {}

namespace {

/// The dims of a copy, those of 1 dropped and neighbours merged where both sides allow it.
struct Loops {
  Dims dims, out, in;

  Loops(llvm::ArrayRef<int64_t> allDims, llvm::ArrayRef<int64_t> outStrides,
        llvm::ArrayRef<int64_t> inStrides) {
    for (size_t i = 0; i < allDims.size(); ++i) {
      if (allDims[i] == 1)
        continue;
      if (!dims.empty() && out.back() == outStrides[i] * allDims[i] &&
          in.back() == inStrides[i] * allDims[i]) {
        dims.back() *= allDims[i];
        out.back() = outStrides[i];
        in.back() = inStrides[i];
        continue;
      }
      dims.push_back(allDims[i]);
      out.push_back(outStrides[i]);
      in.push_back(inStrides[i]);
    }
  }
};

template <typename T>
void copyLine(char *out, int64_t outStride, const char *in, int64_t inStride, int64_t n) {
  T *to = reinterpret_cast<T *>(out);
  const T *from = reinterpret_cast<const T *>(in);
  for (int64_t i = 0; i < n; ++i)
    to[i * outStride] = from[i * inStride];
}

void copyLine(char *out, int64_t outStride, const char *in, int64_t inStride, int64_t n,
              int64_t bytes) {
  if (outStride == 1 && inStride == 1) {
    std::memcpy(out, in, n * bytes);
    return;
  }
  switch (bytes) {
  case 1:
    return copyLine<uint8_t>(out, outStride, in, inStride, n);
  case 2:
    return copyLine<uint16_t>(out, outStride, in, inStride, n);
  case 4:
    return copyLine<uint32_t>(out, outStride, in, inStride, n);
  default:
    return copyLine<uint64_t>(out, outStride, in, inStride, n);
  }
}

void copyLoops(const Loops &loops, size_t level, char *out, const char *in, int64_t bytes) {
  if (level + 1 >= loops.dims.size()) {
    if (loops.dims.empty())
      std::memcpy(out, in, bytes);
    else
      copyLine(out, loops.out[level], in, loops.in[level], loops.dims[level], bytes);
    return;
  }
  for (int64_t i = 0; i < loops.dims[level]; ++i)
    copyLoops(loops, level + 1, out + i * loops.out[level] * bytes,
              in + i * loops.in[level] * bytes, bytes);
}

char *bytesOf(void *p) { return static_cast<char *>(p); }
const char *bytesOf(const void *p) { return static_cast<const char *>(p); }

/// index in [0, size), or -1 if it is outside [-size, size).
int64_t wrapped(int64_t index, int64_t size) {
  if (index < 0)
    index += size;
  return index >= 0 && index < size ? index : -1;
}

} // namespace

void stridedCopy(void *out, llvm::ArrayRef<int64_t> outStrides, const void *in,
                 llvm::ArrayRef<int64_t> inStrides, llvm::ArrayRef<int64_t> dims,
                 int64_t elementBytes) {
  if (numElements(dims) != 0)
    copyLoops(Loops(dims, outStrides, inStrides), 0, bytesOf(out), bytesOf(in), elementBytes);
}

void concat(void *out, llvm::ArrayRef<int64_t> outDims, int64_t axis,
            llvm::ArrayRef<ConcatPiece> pieces, int64_t elementBytes) {
  Dims strides = rowMajorStrides(outDims);
  int64_t at = 0;
  for (const ConcatPiece &piece : pieces) {
    stridedCopy(bytesOf(out) + at * strides[axis] * elementBytes, strides, piece.data,
                piece.strides, piece.dims, elementBytes);
    at += piece.dims[axis];
  }
}

void pad(void *out, llvm::ArrayRef<int64_t> outDims, const void *in, llvm::ArrayRef<int64_t> inDims,
         llvm::ArrayRef<int64_t> inStrides, llvm::ArrayRef<int64_t> before, const void *value,
         int64_t elementBytes) {
  Dims strides = rowMajorStrides(outDims), zeros(outDims.size(), 0);
  stridedCopy(out, strides, value, zeros, outDims, elementBytes);
  int64_t offset = 0;
  for (size_t i = 0; i < outDims.size(); ++i)
    offset += before[i] * strides[i];
  stridedCopy(bytesOf(out) + offset * elementBytes, strides, in, inStrides, inDims, elementBytes);
}

int64_t gather(void *out, const void *data, AxisView view, Indices indices, int64_t elementBytes) {
  int64_t line = view.inner * elementBytes;
  char *to = bytesOf(out);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < indices.count; ++i, to += line) {
      int64_t index = wrapped(indices[i], view.size);
      if (index < 0)
        return i;
      std::memcpy(to, bytesOf(data) + (o * view.size + index) * line, line);
    }
  return kAllInRange;
}

int64_t gatherElements(void *out, const void *data, llvm::ArrayRef<int64_t> dataDims,
                       Indices indices, llvm::ArrayRef<int64_t> indexDims, int64_t axis,
                       int64_t elementBytes) {
  Dims strides = rowMajorStrides(dataDims), at(indexDims.size(), 0);
  for (int64_t i = 0; i < indices.count; ++i) {
    int64_t index = wrapped(indices[i], dataDims[axis]), from = 0;
    if (index < 0)
      return i;
    for (size_t d = 0; d < at.size(); ++d)
      from += (int64_t(d) == axis ? index : at[d]) * strides[d];
    std::memcpy(bytesOf(out) + i * elementBytes, bytesOf(data) + from * elementBytes, elementBytes);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == indexDims[d];)
      at[d] = 0;
  }
  return kAllInRange;
}

int64_t gatherNd(void *out, const void *data, llvm::ArrayRef<int64_t> dataDims, Indices indices,
                 llvm::ArrayRef<int64_t> indexDims, int64_t batchDims, int64_t elementBytes) {
  int64_t width = indexDims.back(), tuples = numElements(indexDims.drop_back());
  int64_t batches = numElements(dataDims.take_front(batchDims));
  int64_t line = numElements(dataDims.drop_front(batchDims + width)) * elementBytes;
  int64_t batchBytes = numElements(dataDims.drop_front(batchDims)) * elementBytes;
  int64_t perBatch = batches ? tuples / batches : 0;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t slice = 0;
    for (int64_t k = 0; k < width; ++k) {
      int64_t size = dataDims[batchDims + k], index = wrapped(indices[t * width + k], size);
      if (index < 0)
        return t * width + k;
      slice = slice * size + index;
    }
    std::memcpy(bytesOf(out) + t * line, bytesOf(data) + t / perBatch * batchBytes + slice * line,
                line);
  }
  return kAllInRange;
}

} // namespace shardc
