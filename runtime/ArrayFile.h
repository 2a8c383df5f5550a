// SPDX-License-Identifier: Apache-2.0
// Files of named arrays (.safetensors, .npz) behind one interface; the files are untrusted.
#pragma once

#include "ir/base/DType.h"
#include "ir/base/Tensor.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace shardc {

/// What a file says of one array. The reader has checked that the dims do not overflow.
struct FileArray {
  std::string name;
  std::string typeName;       ///< as the file spells it: "F32", "<f4"
  std::optional<DType> dtype; ///< none: a type that Shardc has no use for
  Dims dims;
  uint64_t offset = 0,
           numBytes = 0; ///< safetensors: in the file; npz: offset is the member's index
};

class ArrayFile {
public:
  virtual ~ArrayFile() = default;
  /// Tells the formats apart by their first bytes. Every header is checked here, also those of
  /// arrays that nobody reads.
  static llvm::Expected<std::unique_ptr<ArrayFile>> open(llvm::StringRef path);

  const std::string &path() const { return path_; }
  llvm::ArrayRef<FileArray> arrays() const { return arrays_; } ///< sorted by name
  const FileArray *find(llvm::StringRef name) const;

  /// The elements of one of `arrays()` that has a dtype: C order, little endian, perhaps unaligned.
  /// Lives as long as the file object. A mapped file gives its own pages; an .npz member is
  /// unpacked into memory on its first use.
  virtual llvm::Expected<const uint8_t *> data(const FileArray &array) = 0;

protected:
  /// Sorts; fails if two arrays share a name.
  llvm::Error setArrays(std::vector<FileArray> arrays);

  std::string path_;
  std::vector<FileArray> arrays_;
};

} // namespace shardc
