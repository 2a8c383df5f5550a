// SPDX-License-Identifier: Apache-2.0
// Commands by position: the numbering through all programs in which lifetimes are said.
#pragma once

#include "ir/plan/Plan.h"
#include <vector>

namespace shardc {

/// `plan` outlives it.
class Positions {
public:
  explicit Positions(const plan::Plan &plan);

  uint64_t size() const { return commands_.size(); }
  /// Of program `index`; of the number of programs: the end of the last one.
  uint64_t start(int program) const { return starts_[program]; }
  /// Both require: position < size().
  int programIndex(uint64_t position) const;
  const plan::Command &command(uint64_t position) const { return *commands_[position]; }
  /// All, by position.
  llvm::ArrayRef<const plan::Command *> commands() const { return commands_; }

  /// "train command 583 (forward), matmul, layer.0/MatMul"; escaped, as long as it is.
  std::string describe(uint64_t position) const;

private:
  const plan::Plan &plan_;
  std::vector<const plan::Command *> commands_;
  std::vector<uint64_t> starts_; ///< first position of each program, then the number of all commands
};

/// Which commands touch a buffer.
struct Life {
  static constexpr uint64_t kNone = ~uint64_t(0);
  uint64_t producer = kNone;   ///< first position that writes it (an output or the workspace); kNone: the host, or nobody
  uint64_t lastReader = kNone; ///< last position that reads it
  unsigned reads = 0, writes = 0; ///< commands
};
/// By buffer.
std::vector<Life> livesOf(const plan::Plan &plan);

/// How a command touches a buffer.
struct Touch {
  uint64_t position;
  bool reads, writes, isWorkspace;
};
/// In order of position.
std::vector<Touch> touchesOf(const plan::Plan &plan, uint32_t buffer);

/// "forward", "backward", "update".
llvm::StringRef phaseName(uint32_t phase);

} // namespace shardc
