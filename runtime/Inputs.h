// SPDX-License-Identifier: Apache-2.0
// The inputs of a plan, fed from a data set.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Dataset.h"
#include "runtime/Executor.h"

namespace shardc {

class Inputs {
public:
  /// Opens the files and checks every value whose range the plan limits.
  static llvm::Expected<Inputs> open(const plan::Plan &plan, Executor &executor,
                                     llvm::ArrayRef<std::string> files);

  const Dataset &data() const { return data_; }

  /// Copies rows into the inputs' buffers. Allocates nothing. Requires: as many rows as the plan's
  /// batch.
  void feed(llvm::ArrayRef<int64_t> rows) const;

  /// True if a batch may be filled up with rows that do not count: a target says which value to
  /// ignore.
  bool canPad() const;
  /// As `feed`, for 1 to batch rows: the rest of the batch repeats the last row, with targets that
  /// are ignored.
  void feedPadded(llvm::ArrayRef<int64_t> rows) const;

private:
  Inputs(const plan::Plan &plan, Executor &executor, Dataset data);

  const plan::Plan *plan_;
  std::vector<void *> buffers_; // by input
  Dataset data_;
};

} // namespace shardc
