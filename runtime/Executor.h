// SPDX-License-Identifier: Apache-2.0
// Executes a plan on the host: binds every command to a kernel at load, then only issues them.
#pragma once

#include "ir/plan/Plan.h"
#include <memory>

namespace shardc {

class Communicator;

struct ExecutorOptions {
  /// The group that runs the plan together; outlives the executor. Null: one rank.
  Communicator *communicator = nullptr;
  /// Every buffer in memory of its own, but those that a command overwrites in place: what the plan lays over each other
  /// cannot disturb each other (`--check-races`). What lives in one program only is NaN each time that this starts.
  bool disjoint = false;
  /// Not 0: a random pause before each command, on each stream, of this seed: missing waits come to light.
  uint64_t delaySeed = 0;
};

/// One rank. Each stream of the plan that has commands runs on a thread of its own (the first on the caller's). Owns the arenas of its spaces. Requires: `plan` is sound (checkPlan) and outlives it.
/// After `create` no function allocates, looks a name up or decides anything.
class Executor {
public:
  /// Binds all programs; an unknown kernel or a shape that a kernel does not take is an error with the command's place.
  static llvm::Expected<std::unique_ptr<Executor>> create(const plan::Plan &plan, const ExecutorOptions &options = {});
  virtual ~Executor() = default;

  /// Start of a buffer in this rank's memory.
  virtual void *buffer(uint32_t index) = 0;
  /// Start of an operand: of this rank's slice, where it has a rank stride.
  void *at(const plan::Ref &ref) {
    return static_cast<char *>(buffer(ref.buffer())) + ref.offset() + rank() * ref.rank_stride();
  }
  virtual unsigned rank() const = 0;
  /// The f64[kNumScalars] array (ir/plan/Scalars.h).
  virtual double *scalars() = 0;
  /// Index of a program by name, -1 if there is none; look up once.
  virtual int program(llvm::StringRef name) const = 0;
  /// Runs a program to its end. A kernel's fault aborts the communicator; where another rank failed, the error is its cause.
  virtual llvm::Error run(int program) = 0;
};

} // namespace shardc
