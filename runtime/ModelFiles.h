// SPDX-License-Identifier: Apache-2.0
// Starting values out of the model that a plan was made of. No ONNX here: the plan says where the
// bytes lie.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/ElementSource.h"
#include <map>
#include <memory>

namespace llvm {
class MemoryBuffer;
}

namespace shardc {

class ModelFiles {
public:
  /// Files lie where the plan says. Where that is gone, the model is looked for at the path that
  /// the compiler was given, from here and from the plan's folder, and external files beside it.
  /// With a `replacement` for the model only there and beside it. Nothing is opened yet.
  ModelFiles(const plan::Plan &plan, llvm::StringRef planPath, llvm::StringRef replacement);
  ~ModelFiles();

  /// Does the plan tell a place, and is there a file now? External weights that were absent when the plan was made count.
  bool has(const plan::Parameter &parameter) const;

  /// The parameter's elements, to be read as `dtype`; they live as long as this. Requires: `has(parameter)` or a source
  /// of kind FILE. Errors: file missing, too short, or the model file is not the one that the plan was made of.
  llvm::Expected<ElementSource> find(const plan::Parameter &parameter, DType dtype);

private:
  std::string placeOf(llvm::StringRef file) const;
  llvm::Expected<const llvm::MemoryBuffer *> open(llvm::StringRef file);
  llvm::Error checkModel();

  const plan::Plan &plan_;
  std::string model_; ///< path that the compiler was given, or the replacement
  bool replaced_, checked_ = false;
  std::map<std::string, std::unique_ptr<llvm::MemoryBuffer>> files_; ///< mapped, by place
};

} // namespace shardc
