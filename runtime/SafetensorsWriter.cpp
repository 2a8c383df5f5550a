// SPDX-License-Identifier: Apache-2.0
#include "ir/base/File.h"
#include "runtime/Safetensors.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cassert>

namespace shardc {

static llvm::StringRef typeName(DType dtype) {
  constexpr llvm::StringLiteral kNames[kNumDTypes] = {"F32", "F64", "F16", "BF16",
                                                      "I32", "I64", "U8",  "BOOL"};
  return kNames[unsigned(dtype)];
}

static uint64_t numBytes(const ArrayToWrite &array) {
  return numElements(array.dims) * byteSize(array.dtype);
}

/// The JSON header, padded with blanks so that the arrays begin at a multiple of 8.
static std::string makeHeader(llvm::ArrayRef<ArrayToWrite> arrays) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.objectBegin();
  json.attributeObject("__metadata__", [&] { json.attribute("format", "pt"); });
  uint64_t offset = 0;
  for (const ArrayToWrite &array : arrays) {
    uint64_t end = offset + numBytes(array);
    json.attributeObject(array.name, [&] {
      json.attribute("dtype", typeName(array.dtype));
      json.attributeArray("shape", [&] {
        for (int64_t dim : array.dims)
          json.value(dim);
      });
      json.attributeArray("data_offsets", [&] { json.value(offset), json.value(end); });
    });
    offset = end;
  }
  json.objectEnd();
  text.append(-text.size() & 7, ' ');
  return text;
}

template <typename T>
static void writeScaled(llvm::raw_ostream &os, const T *data, int64_t count, double scale) {
  T chunk[4096];
  for (int64_t i = 0; i < count; i += 4096) {
    int64_t n = std::min<int64_t>(4096, count - i);
    for (int64_t j = 0; j < n; ++j)
      chunk[j] = T(data[i + j] * scale);
    os.write(reinterpret_cast<const char *>(chunk), n * sizeof(T));
  }
}

uint64_t safetensorsSize(llvm::ArrayRef<ArrayToWrite> arrays) {
  uint64_t size = 8 + makeHeader(arrays).size();
  for (const ArrayToWrite &array : arrays)
    size += numBytes(array);
  return size;
}

llvm::Error writeSafetensors(llvm::StringRef path, llvm::ArrayRef<ArrayToWrite> arrays) {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) -> llvm::Error {
    std::string header = makeHeader(arrays);
    char length[8];
    llvm::support::endian::write64le(length, header.size());
    os.write(length, 8) << header;
    for (const ArrayToWrite &array : arrays) {
      if (array.scale == 1)
        os.write(static_cast<const char *>(array.data), numBytes(array));
      else if (array.dtype == DType::F32)
        writeScaled(os, static_cast<const float *>(array.data), numElements(array.dims),
                    array.scale);
      else if (array.dtype == DType::F64)
        writeScaled(os, static_cast<const double *>(array.data), numElements(array.dims),
                    array.scale);
      else
        assert(false && "only f32 and f64 are scaled");
    }
    return llvm::Error::success();
  });
}

} // namespace shardc
