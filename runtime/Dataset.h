// SPDX-License-Identifier: Apache-2.0
// The rows that a plan trains on: one array per input of the plan, stacked along dim 0, from one or
// more files.
#pragma once

#include "runtime/ArrayFile.h"

namespace shardc {

/// One input of a plan; dims[0] is the batch of one rank and micro-step.
struct InputSpec {
  std::string name;
  DType dtype = DType::F32;
  Dims dims;
};

class Dataset {
public:
  /// Row i of the set is row i of the files laid end to end. Arrays that no input needs are
  /// ignored. Fails if an input has no array, an array does not convert (see Convert.h), the dims
  /// after the first differ, or the arrays of one file have different numbers of rows. Requires:
  /// every input has rank >= 1.
  static llvm::Expected<Dataset> open(llvm::ArrayRef<std::string> files,
                                      llvm::ArrayRef<InputSpec> inputs);

  int64_t rows() const { return rows_; }
  /// The files' names, for messages: "a.npz" or "a.npz and 2 more".
  std::string name() const;

  /// Fails, naming row and value, unless every element of the input lies in [low, high) or is
  /// `ignored`. Reads the whole array once. Requires: the input is of an integer type.
  llvm::Error checkRange(llvm::StringRef input, int64_t low, int64_t high,
                         std::optional<int64_t> ignored) const;

  /// Writes the given rows of input number `input`, one after the other, as the input's type.
  /// Allocates nothing.
  void copyRows(unsigned input, llvm::ArrayRef<int64_t> rows, void *to) const;

private:
  struct Part { // one input's array in one file
    const uint8_t *data;
    DType dtype;
    std::string place;
  };
  std::vector<InputSpec> inputs_;
  std::vector<int64_t> rowElements_; // by input: elements of one row
  std::vector<std::unique_ptr<ArrayFile>> files_;
  std::vector<int64_t> firstRow_;        // by file; one more at the end
  std::vector<std::vector<Part>> parts_; // [file][input]
  int64_t rows_ = 0;

  llvm::Error addFile(llvm::StringRef path);
};

} // namespace shardc
