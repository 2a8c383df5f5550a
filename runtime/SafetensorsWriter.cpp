// SPDX-License-Identifier: Apache-2.0
#include "ir/base/File.h"
#include "runtime/Safetensors.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>

namespace shardc {

static llvm::StringRef typeName(DType dtype) {
  constexpr llvm::StringLiteral kNames[kNumDTypes] = {"F32", "F64", "F16", "BF16",
                                                      "I32", "I64", "U8",  "BOOL"};
  return kNames[unsigned(dtype)];
}

static uint64_t numBytes(const ArrayInfo &array) {
  return numElements(array.dims) * byteSize(array.dtype);
}

/// The JSON header, padded with blanks so that the arrays begin at a multiple of 8.
static std::string makeHeader(llvm::ArrayRef<ArrayInfo> arrays) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.objectBegin();
  json.attributeObject("__metadata__", [&] { json.attribute("format", "pt"); });
  uint64_t offset = 0;
  for (const ArrayInfo &array : arrays) {
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

uint64_t safetensorsSize(llvm::ArrayRef<ArrayInfo> arrays) {
  uint64_t size = 8 + makeHeader(arrays).size();
  for (const ArrayInfo &array : arrays)
    size += numBytes(array);
  return size;
}

llvm::Error streamSafetensors(llvm::StringRef path, llvm::ArrayRef<ArrayInfo> arrays,
                              llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write) {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) -> llvm::Error {
    std::string header = makeHeader(arrays);
    char length[8];
    llvm::support::endian::write64le(length, header.size());
    os.write(length, 8) << header;
    if (llvm::Error error = write(os))
      return error;
    assert(os.tell() == safetensorsSize(arrays) && "not the arrays that were announced");
    return llvm::Error::success();
  });
}

llvm::Error writeSafetensors(llvm::StringRef path, llvm::ArrayRef<ArrayToWrite> arrays) {
  std::vector<ArrayInfo> infos(arrays.begin(), arrays.end());
  return streamSafetensors(path, infos, [&](llvm::raw_ostream &os) {
    for (const ArrayToWrite &array : arrays)
      os.write(static_cast<const char *>(array.data), numBytes(array));
    return llvm::Error::success();
  });
}

} // namespace shardc
