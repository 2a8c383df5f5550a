// SPDX-License-Identifier: Apache-2.0
#include "runtime/Safetensors.h"
#include "ir/base/Error.h"
#include "ir/base/Json.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>

namespace shardc {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000; // the reference reader's limit

struct TypeName {
  llvm::StringLiteral name;
  unsigned bits;
  std::optional<DType> dtype;
};
constexpr TypeName kTypes[] = {
    {"F32", 32, DType::F32},      {"F64", 64, DType::F64},     {"F16", 16, DType::F16},
    {"BF16", 16, DType::BF16},    {"I32", 32, DType::I32},     {"I64", 64, DType::I64},
    {"U8", 8, DType::U8},         {"BOOL", 8, DType::Bool},    {"I8", 8, std::nullopt},
    {"I16", 16, std::nullopt},    {"U16", 16, std::nullopt},   {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},    {"C64", 64, std::nullopt},   {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt}};

class SafetensorsFile : public ArrayFile {
public:
  llvm::Error read(llvm::StringRef path, std::unique_ptr<llvm::MemoryBuffer> buffer);
  llvm::Expected<const uint8_t *> data(const FileArray &array) override {
    return reinterpret_cast<const uint8_t *>(buffer_->getBufferStart()) + array.offset;
  }

private:
  llvm::Expected<FileArray> readEntry(llvm::StringRef name, const llvm::json::Value &value) const;
  std::unique_ptr<llvm::MemoryBuffer> buffer_;
  uint64_t dataStart_ = 0;
};

llvm::Expected<FileArray> SafetensorsFile::readEntry(llvm::StringRef name,
                                                     const llvm::json::Value &value) const {
  std::string place = path_ + "/" + name.str();
  const llvm::json::Object *entry = value.getAsObject();
  auto typeName = entry ? entry->getString("dtype") : std::nullopt;
  const llvm::json::Array *shape = entry ? entry->getArray("shape") : nullptr;
  const llvm::json::Array *offsets = entry ? entry->getArray("data_offsets") : nullptr;
  if (!typeName || !shape || !offsets || offsets->size() != 2)
    return userError(place + ": header entry is damaged: wanted dtype, shape and two data_offsets");

  FileArray array;
  array.name = name.str();
  array.typeName = typeName->str();
  const TypeName *type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                      [&](const TypeName &t) { return t.name == *typeName; });
  if (type == std::end(kTypes))
    return userError(place + ": unknown dtype: got \"" + *typeName +
                     "\", wanted one of safetensors' types");
  array.dtype = type->dtype;
  for (const llvm::json::Value &dim : *shape) {
    std::optional<int64_t> size = dim.getAsInteger();
    if (!size || *size < 0)
      return userError(place + ": shape is damaged: wanted integers from 0");
    array.dims.push_back(*size);
  }
  std::optional<int64_t> count = checkedNumElements(array.dims);
  if (!count)
    return userError(place + ": shape is too large: got " + formatDims(array.dims) +
                     ", wanted at most 2^63 - 1 elements");

  auto begin = (*offsets)[0].getAsUINT64(), end = (*offsets)[1].getAsUINT64();
  uint64_t size = buffer_->getBufferSize() - dataStart_;
  if (!begin || !end || *begin > *end || *end > size)
    return userError(place + ": data_offsets lie outside of the file: got a file with " +
                         llvm::Twine(size) + " bytes of data, wanted offsets inside it",
                     "is the download complete?");
  uint64_t wanted = uint64_t(*count) * (type->bits / 8);
  if (*end - *begin != wanted)
    return userError(place + ": size does not fit the shape: got " + llvm::Twine(*end - *begin) +
                     " bytes, wanted " + llvm::Twine(wanted) + " for " + *typeName + " " +
                     formatDims(array.dims));
  array.offset = dataStart_ + *begin;
  array.numBytes = wanted;
  return array;
}

llvm::Error SafetensorsFile::read(llvm::StringRef path,
                                  std::unique_ptr<llvm::MemoryBuffer> buffer) {
  path_ = path.str();
  buffer_ = std::move(buffer);
  llvm::StringRef bytes = buffer_->getBuffer();
  if (bytes.size() < 8)
    return userError(path_ + ": is no .safetensors or .npz file: got " + llvm::Twine(bytes.size()) +
                     " bytes");
  uint64_t headerSize = llvm::support::endian::read64le(bytes.data());
  if (headerSize > kMaxHeader || headerSize > bytes.size() - 8)
    return userError(path_ + ": is no .safetensors or .npz file, or is cut off: got a header of " +
                         llvm::Twine(headerSize) + " bytes in a file of " +
                         llvm::Twine(bytes.size()),
                     "is the download complete?");
  dataStart_ = 8 + headerSize;
  llvm::StringRef header = bytes.substr(8, headerSize);
  auto object = parseJsonObject(header);
  if (!object)
    return userError(path_ + ": header is damaged: " + llvm::toString(object.takeError()));

  std::vector<FileArray> arrays;
  for (const auto &[name, value] : *object) {
    if (name == "__metadata__")
      continue;
    auto array = readEntry(name, value);
    if (!array)
      return array.takeError();
    arrays.push_back(std::move(*array));
  }
  if (llvm::Error error =
          setArrays(std::move(arrays))) // by name, so that errors below do not depend on hashing
    return error;

  std::vector<const FileArray *> byOffset;
  for (const FileArray &array : arrays_)
    byOffset.push_back(&array);
  std::stable_sort(byOffset.begin(), byOffset.end(), [](const FileArray *a, const FileArray *b) {
    return std::pair(a->offset, a->numBytes) < std::pair(b->offset, b->numBytes);
  });
  uint64_t covered = dataStart_;
  for (const FileArray *array : byOffset) {
    if (array->offset != covered)
      return userError(
          path_ + "/" + array->name + ": " +
          (array->offset < covered ? "overlaps another array" : "unused bytes before this array") +
          ": got data_offsets from " + llvm::Twine(array->offset - dataStart_) + ", wanted " +
          llvm::Twine(covered - dataStart_));
    covered += array->numBytes;
  }
  if (covered != bytes.size())
    return userError(path_ + ": bytes at the end belong to no array: got " +
                     llvm::Twine(bytes.size()) + " bytes, wanted " + llvm::Twine(covered));
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::unique_ptr<ArrayFile>>
openSafetensors(llvm::StringRef path, std::unique_ptr<llvm::MemoryBuffer> buffer) {
  auto file = std::make_unique<SafetensorsFile>();
  if (llvm::Error error = file->read(path, std::move(buffer)))
    return error;
  return file;
}

} // namespace shardc
