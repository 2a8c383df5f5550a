// SPDX-License-Identifier: Apache-2.0
// Starting values out of the model that a plan was made of. No ONNX here: the plan says where the
// bytes lie.
#pragma once

#include "ir/plan/Plan.h"
#include <map>
#include <memory>

namespace llvm {
class MemoryBuffer;
}

namespace shardc {

class ModelFiles {
public:
  /// The model is `replacement` if that is given, else the path in the plan: as it is, or, if it is
  /// relative and not found, from the plan's folder. Nothing is opened yet.
  ModelFiles(const plan::Plan &plan, llvm::StringRef planPath, llvm::StringRef replacement);
  ~ModelFiles();

  /// Copies, transposes and converts to `dtype`. Requires: the parameter's source is a file; `to`
  /// has room for its dims. Errors: file missing, too short, or the model file is not the one that
  /// the plan was made of.
  llvm::Error load(const plan::Parameter &parameter, void *to, DType dtype);

private:
  llvm::Expected<const llvm::MemoryBuffer *> open(llvm::StringRef file);

  const plan::Plan &plan_;
  std::string path_; ///< of the model
  std::map<std::string, std::unique_ptr<llvm::MemoryBuffer>>
      files_; ///< mapped, by name in the plan
};

} // namespace shardc
