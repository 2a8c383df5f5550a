// SPDX-License-Identifier: Apache-2.0
// Files and error texts for the tests of the runtime.
#pragma once

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <string>

namespace shardc::test {

/// A new folder that goes away with all that is in it.
class TemporaryFolder {
public:
  TemporaryFolder() {
    if (llvm::sys::fs::createUniqueDirectory("shardc-test", path_))
      std::abort();
  }
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path_); }
  TemporaryFolder(const TemporaryFolder &) = delete;

  std::string path(llvm::StringRef name) const { return (path_ + "/" + name).str(); }

  /// Writes `bytes` as a file of that name; returns its path.
  std::string write(llvm::StringRef name, llvm::StringRef bytes) const {
    std::error_code code;
    llvm::raw_fd_ostream(path(name), code) << bytes;
    return path(name);
  }

private:
  llvm::SmallString<128> path_;
};

/// The message without its hint and without folder names: "a.npz/x: wrong dtype: ...".
inline std::string messageOf(llvm::Error error) {
  if (!error)
    return "success";
  std::string text = llvm::toString(std::move(error));
  text = text.substr(0, text.find("\nhint:"));
  for (size_t slash; (slash = text.find("/shardc-test")) != std::string::npos;) {
    size_t begin = text.rfind(' ', slash) == std::string::npos ? 0 : text.rfind(' ', slash) + 1;
    text.erase(begin, text.find('/', slash + 1) + 1 - begin);
  }
  return text;
}

template <typename T> std::string messageOf(llvm::Expected<T> value) {
  return value ? "no error" : messageOf(value.takeError());
}

inline std::string dataFile(llvm::StringRef name) {
  return (SHARDC_SOURCE_DIR "/tests/runtime/data/" + name).str();
}

} // namespace shardc::test
