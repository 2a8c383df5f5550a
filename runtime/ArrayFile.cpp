// SPDX-License-Identifier: Apache-2.0
#include "runtime/ArrayFile.h"
#include "ir/base/Error.h"
#include "ir/base/Hint.h"
#include "runtime/Npz.h"
#include "runtime/Safetensors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <bit>

namespace shardc {

static_assert(std::endian::native == std::endian::little,
              "files are little endian and used as they are");

static llvm::Expected<std::unique_ptr<ArrayFile>> openFile(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return userError(path + ": cannot be opened: " + code.message(), "check the path");
  if (!llvm::sys::fs::is_regular_file(status)) // a device or pipe may never end
    return userError(path + ": is not a file: got a folder or device, wanted a regular file");
  auto buffer =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return userError(path + ": cannot be opened: " + buffer.getError().message());
  // "PK\3\4" starts a zip file, "PK\5\6" an empty one.
  llvm::StringRef start = (*buffer)->getBuffer().take_front(4);
  if (start == "PK\3\4" || start == "PK\5\6")
    return openNpz(path);
  return openSafetensors(path, std::move(*buffer));
}

llvm::Expected<std::unique_ptr<ArrayFile>> ArrayFile::open(llvm::StringRef path) {
  return withHint(openFile(path), "write it with safetensors.numpy.save_file or numpy.savez");
}

const FileArray *ArrayFile::find(llvm::StringRef name) const {
  auto it = std::lower_bound(arrays_.begin(), arrays_.end(), name,
                             [](const FileArray &a, llvm::StringRef n) { return a.name < n; });
  return it != arrays_.end() && it->name == name ? &*it : nullptr;
}

llvm::Error ArrayFile::setArrays(std::vector<FileArray> arrays) {
  std::sort(arrays.begin(), arrays.end(),
            [](const FileArray &a, const FileArray &b) { return a.name < b.name; });
  auto twice =
      std::adjacent_find(arrays.begin(), arrays.end(),
                         [](const FileArray &a, const FileArray &b) { return a.name == b.name; });
  if (twice != arrays.end())
    return userError(path_ + ": two arrays are called \"" + twice->name + "\"");
  arrays_ = std::move(arrays);
  return llvm::Error::success();
}

} // namespace shardc
