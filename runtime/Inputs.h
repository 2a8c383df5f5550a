// SPDX-License-Identifier: Apache-2.0
// The inputs of a plan, fed from a data set.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Dataset.h"
#include "runtime/Executor.h"

namespace shardc {

/// Opens the files and checks every value whose range the plan limits. Once a process: ranks share the result.
llvm::Expected<Dataset> openData(const plan::Plan &plan, llvm::ArrayRef<std::string> files);

/// True if a batch may be filled up with rows that do not count: a target says which value to ignore.
bool canPad(const plan::Plan &plan);

class Inputs {
public:
  /// All three outlive it.
  Inputs(const plan::Plan &plan, Executor &executor, const Dataset &data);

  /// Copies rows into the inputs' buffers. Allocates nothing. Requires: as many rows as the plan's
  /// batch. Errors: of a device.
  llvm::Error feed(llvm::ArrayRef<int64_t> rows);

  /// As `feed`, for 1 to batch rows: the rest of the batch repeats the last row, with targets that
  /// are ignored. Requires: canPad.
  llvm::Error feedPadded(llvm::ArrayRef<int64_t> rows);

private:
  struct Target { // of an input
    uint32_t buffer;
    uint64_t bytes;
    std::vector<char> staged; ///< filled before it goes to a device; empty on the host
    void *memory;             ///< the buffer on the host, or where `staged` lies
  };
  void copyRows(llvm::ArrayRef<int64_t> rows);
  llvm::Error send();

  const plan::Plan *plan_;
  Executor *executor_;
  std::vector<Target> targets_; // by input
  const Dataset *data_;
};

} // namespace shardc
