// SPDX-License-Identifier: Apache-2.0
// One model file, compiled as often as a question needs.
#pragma once

#include "passes/Budget.h"
#include "passes/Pipeline.h"
#include "tools/compile/Flags.h"
#include <mutex>

namespace shardc {

/// Any number of threads may ask at once.
class Compiler {
public:
  /// `flags` outlive it.
  static llvm::Expected<std::unique_ptr<Compiler>> open(const Flags &flags);

  /// As the flags say; with `setting`, that instead of their batch, ranks, stage and micro-steps. The graph
  /// of the last batch is kept.
  llvm::Expected<Compilation> compile(const DebugOptions &debug,
                                      std::optional<Setting> setting = std::nullopt);
  /// The plan of a setting, without looking inside.
  llvm::Expected<plan::Plan> plan(const Setting &setting);

  /// The batch that the flags say.
  llvm::Expected<int64_t> batch();
  /// How a user who gave these flags would say another batch: "--batch 24", "--dim batch=24".
  std::string batchFlags(int64_t batch) const;

private:
  Compiler(const Flags &flags, std::unique_ptr<OnnxModel> model) : flags_(flags), model_(std::move(model)) {}
  /// nullopt: the flags' batch. Prints the notes of the first import.
  llvm::Expected<std::shared_ptr<const Graph>> import(std::optional<int64_t> batch);

  const Flags &flags_;
  const std::unique_ptr<OnnxModel> model_;
  std::mutex mutex_; ///< of what follows
  std::shared_ptr<const Graph> graph_;
  int64_t batch_ = 0;  ///< of `graph_`
  bool noted_ = false; ///< the user has been told what the importer noticed
};

} // namespace shardc
