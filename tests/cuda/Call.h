// SPDX-License-Identifier: Apache-2.0
// One kernel call in several precisions: on the host in f64, on the device in what is asked for.
#pragma once

#include "tests/cuda/RunCommand.h"

namespace shardc::test {

struct CallOperand {
  Tensor value;                    ///< f64 stands for the storage type of the run
  std::vector<int64_t> order = {}; ///< dims from the slowest to the fastest in memory; empty: row-major
  int64_t gap = 1;                 ///< stride of the fastest
  bool absent = false;
  bool wide = false; ///< at least f32 in every run: statistics of rows
};
struct CallResult {
  Dims dims;
  DType dtype = DType::F64; ///< F64 stands for the storage type
  bool wide = false;
};

/// In texts of attributes, STORED stands for the storage type, WIDE for the type that it is computed in.
struct Call {
  std::string kernel;
  Attrs attrs;
  std::vector<CallOperand> in;
  std::vector<CallResult> out;
  std::vector<std::pair<unsigned, unsigned>> inPlace = {}; ///< result, operand that it takes the memory of

  Call &with(llvm::StringRef name, int64_t value) { return set(name, value); }
  Call &with(llvm::StringRef name, double value) { return set(name, value); }
  Call &with(llvm::StringRef name, llvm::StringRef value) { return set(name, value.str()); }
  Call &with(llvm::StringRef name, llvm::ArrayRef<int64_t> value) { return set(name, Ints(value)); }
  Call &set(llvm::StringRef name, Attr value) {
    attrs.set(name, std::move(value));
    return *this;
  }
};

/// Normal numbers, the same for the same seed; each is exact in bf16 and in f16.
Tensor randomFloats(llvm::ArrayRef<int64_t> dims, unsigned seed = 1);
/// In [low, high).
Tensor randomIndices(llvm::ArrayRef<int64_t> dims, int64_t low, int64_t high, unsigned seed = 2);

/// Runs the call on the host in f64 and, twice, on the device in each of f32, f64, f16 and bf16; compares
/// within what the type can hold, times `slack`. The two runs on the device must be bitwise equal.
void expectLikeHost(const Call &call, double slack = 1, llvm::ArrayRef<double> scalars = {});

/// What the device says of the call in f32: "" if it has nothing to complain of.
std::string complaint(const Call &call);

} // namespace shardc::test
