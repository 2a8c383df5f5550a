// SPDX-License-Identifier: Apache-2.0
// Executes a plan on the host: binds every command to a kernel at load, then only issues them.
#pragma once

#include "ir/plan/Plan.h"
#include <memory>

namespace shardc {

/// One rank. Owns the arenas of its spaces. Requires: `plan` is sound (checkPlan) and outlives it.
/// After `create` no function allocates, looks a name up or decides anything.
class Executor {
public:
  /// Binds all programs; an unknown kernel or a shape that a kernel does not take is an error with the command's place.
  static llvm::Expected<std::unique_ptr<Executor>> create(const plan::Plan &plan, unsigned rank = 0);
  virtual ~Executor() = default;

  /// Start of a buffer in this rank's memory.
  virtual void *buffer(uint32_t index) = 0;
  void *at(const plan::Ref &ref) { return static_cast<char *>(buffer(ref.buffer())) + ref.offset(); }
  /// The f64[kNumScalars] array (ir/plan/Scalars.h).
  virtual double *scalars() = 0;
  /// Index of a program by name, -1 if there is none; look up once.
  virtual int program(llvm::StringRef name) const = 0;
  /// Runs a program to its end.
  virtual llvm::Error run(int program) = 0;
};

} // namespace shardc
