// SPDX-License-Identifier: Apache-2.0
// Who has come to a group, whether they mean the same work, and what to say if they do not.
#pragma once

#include "runtime/comm/Process.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <string>
#include <vector>

namespace shardc {

/// What a rank says of itself.
struct Hello {
  uint32_t rank, size;
  int64_t stagingBytes;
  std::string plan;

  static Hello of(const ProcessGroupOptions &options);
  std::string packet() const;
  /// Nothing if it is no packet of this version.
  static std::optional<Hello> parse(llvm::StringRef packet);
};

/// Why the group cannot be: what all ranks are told. No message: it can.
struct Refusal {
  std::string message, hint;
};

Refusal didNotCome(llvm::ArrayRef<unsigned> missing, unsigned size, double timeLimit);

/// As rank 0 takes it.
class Roll {
public:
  explicit Roll(const Hello &self);

  /// Someone who calls himself a rank. Nothing if he is none that was still to come: a reason to refuse.
  std::optional<Hello> add(llvm::StringRef packet);
  /// A rank that had come has gone.
  void remove(unsigned rank);
  /// All have come, of the largest group that anybody means.
  bool isComplete() const;
  /// It will not work, whoever comes.
  bool isHopeless() const;
  Refusal judge(double timeLimit) const;

private:
  std::vector<std::optional<Hello>> ranks_;
  Refusal refusal_;
};

} // namespace shardc
