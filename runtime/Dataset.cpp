// SPDX-License-Identifier: Apache-2.0
#include "runtime/Dataset.h"
#include "ir/base/Error.h"
#include "runtime/Convert.h"
#include <algorithm>
#include <cassert>
#include <cstring>

namespace shardc {

/// "input_ids, labels, mask and 12 more"
static std::string listNames(llvm::ArrayRef<FileArray> arrays) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(arrays.size(), 8); ++i)
    text += (i ? ", " : "") + arrays[i].name;
  if (arrays.size() > 8)
    text += " and " + std::to_string(arrays.size() - 8) + " more";
  return text.empty() ? "none" : text;
}

static std::string rowDims(llvm::ArrayRef<int64_t> dims) {
  return "N" + (dims.size() > 1 ? "x" + formatDims(dims.drop_front()) : "");
}

llvm::Error Dataset::addFile(llvm::StringRef path) {
  auto file = ArrayFile::open(path);
  if (!file)
    return file.takeError();
  std::vector<Part> parts;
  int64_t rows = -1;
  std::string firstName;
  for (const InputSpec &input : inputs_) {
    const FileArray *array = (*file)->find(input.name);
    if (!array)
      return userError(path + ": no array for input \"" + input.name + "\": got " +
                           listNames((*file)->arrays()),
                       "the plan wants one array per input, named like it");
    std::string place = (path + "/" + input.name).str();
    if (!array->dtype || !isConvertible(*array->dtype, input.dtype))
      return userError(
          place + ": wrong dtype: got " +
              (array->dtype ? toString(*array->dtype) : llvm::StringRef(array->typeName)) +
              ", wanted " + toString(input.dtype),
          "int32 is taken for int64 and any float for f32; save it in C order, little endian");
    llvm::ArrayRef<int64_t> got = array->dims, wanted = input.dims;
    if (got.size() != wanted.size() || got.drop_front() != wanted.drop_front())
      return userError(place + ": wrong shape: got " + formatDims(got) + ", wanted " +
                           rowDims(wanted),
                       "pad or cut the rows, or compile the plan with other --dim");
    if (rows < 0)
      rows = got[0], firstName = input.name;
    if (got[0] != rows)
      return userError(place + ": number of rows differs: got " + llvm::Twine(got[0]) +
                           ", wanted " + llvm::Twine(rows) + " as in \"" + firstName + "\"",
                       "every array has one row per sample");
    auto data = (*file)->data(*array);
    if (!data)
      return data.takeError();
    parts.push_back({*data, *array->dtype, std::move(place)});
  }
  rows_ += std::max<int64_t>(rows, 0);
  firstRow_.push_back(rows_);
  files_.push_back(std::move(*file));
  parts_.push_back(std::move(parts));
  return llvm::Error::success();
}

llvm::Expected<Dataset> Dataset::open(llvm::ArrayRef<std::string> files,
                                      llvm::ArrayRef<InputSpec> inputs) {
  Dataset set;
  set.inputs_.assign(inputs.begin(), inputs.end());
  for (const InputSpec &input : inputs) {
    assert(!input.dims.empty() && "an input without rows");
    set.rowElements_.push_back(numElements(llvm::ArrayRef<int64_t>(input.dims).drop_front()));
  }
  set.firstRow_.push_back(0);
  for (const std::string &file : files)
    if (llvm::Error error = set.addFile(file))
      return error;
  return set;
}

std::string Dataset::name() const {
  if (files_.empty())
    return "data";
  return files_[0]->path() +
         (files_.size() > 1 ? " and " + std::to_string(files_.size() - 1) + " more" : "");
}

void Dataset::copyRows(unsigned input, llvm::ArrayRef<int64_t> rows, void *to) const {
  int64_t elements = rowElements_[input];
  DType dtype = inputs_[input].dtype;
  char *target = static_cast<char *>(to);
  for (int64_t row : rows) {
    assert(row >= 0 && row < rows_);
    size_t file = std::upper_bound(firstRow_.begin(), firstRow_.end(), row) - firstRow_.begin() - 1;
    const Part &part = parts_[file][input];
    const uint8_t *source = part.data + (row - firstRow_[file]) * elements * byteSize(part.dtype);
    convertElements(source, part.dtype, target, dtype, elements);
    target += elements * byteSize(dtype);
  }
}

llvm::Error Dataset::checkRange(llvm::StringRef name, int64_t low, int64_t high,
                                std::optional<int64_t> ignored) const {
  size_t input = 0;
  while (input < inputs_.size() && inputs_[input].name != name)
    ++input;
  assert(input < inputs_.size() && "no such input");
  int64_t elements = rowElements_[input];
  if (elements == 0)
    return llvm::Error::success();
  for (size_t file = 0; file < files_.size(); ++file) {
    const Part &part = parts_[file][input];
    assert(part.dtype == DType::I32 || part.dtype == DType::I64);
    int64_t values[1024];
    for (int64_t i = 0, n = (firstRow_[file + 1] - firstRow_[file]) * elements; i < n; i += 1024) {
      int64_t count = std::min<int64_t>(1024, n - i);
      convertElements(part.data + i * byteSize(part.dtype), part.dtype, values, DType::I64, count);
      for (int64_t j = 0; j < count; ++j)
        if ((values[j] < low || values[j] >= high) && values[j] != ignored)
          return userError(part.place + ": value out of range in row " +
                               llvm::Twine((i + j) / elements) + ": got " + llvm::Twine(values[j]) +
                               ", wanted " + llvm::Twine(low) + " to " + llvm::Twine(high - 1) +
                               (ignored ? " or " + std::to_string(*ignored) : ""),
                           "is the data of another vocabulary, or another set of classes?");
    }
  }
  return llvm::Error::success();
}

} // namespace shardc
