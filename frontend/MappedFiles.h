// SPDX-License-Identifier: Apache-2.0
// Files that hold a model's weights, mapped read-only; opened so that nothing outside one folder
// can be reached.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <deque>
#include <memory>
#include <string>

namespace shardc {

/// Owns every byte that a TensorSource points to.
class MappedFiles {
public:
  struct External {
    std::string path;                          ///< absolute
    std::unique_ptr<llvm::MemoryBuffer> bytes; ///< null: no such file
  };

  /// `root` is the folder of external data; "" is the current folder.
  explicit MappedFiles(llvm::StringRef root) : root_(root.empty() ? "." : root.str()) {}

  /// Opens root/location, each component without following links, once per location; a regular
  /// file, or one that does not exist. Errors begin with `place`.
  llvm::Expected<const External *> external(llvm::StringRef location, const llvm::Twine &place);

  /// Keeps `bytes` and returns their final place.
  llvm::StringRef own(std::string bytes) { return owned_.emplace_back(std::move(bytes)); }

  void setModel(std::unique_ptr<llvm::MemoryBuffer> model) { model_ = std::move(model); }
  llvm::StringRef model() const { return model_->getBuffer(); }

private:
  std::string root_;
  std::unique_ptr<llvm::MemoryBuffer> model_;
  llvm::StringMap<External> externals_;
  std::deque<std::string> owned_;
};

} // namespace shardc
