// SPDX-License-Identifier: Apache-2.0
// An op as a command with memory, laid out as the op says that its kernel takes it: for kernels of the host and of devices.
#pragma once

#include "runtime/host/Kernel.h"
#include "tests/ops/Harness.h"

namespace shardc::test {

/// An array in memory of its own.
struct KernelMemory {
  std::vector<double> bytes; // doubles, for alignment
  host::Array array;         // points into `bytes`

  /// `order` lists the dims from the slowest to the fastest; `gap` is the stride of the fastest.
  KernelMemory(DType dtype, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> order, int64_t gap);
  void put(const Tensor &tensor);
  Tensor get() const;
};

struct PreparedKernel {
  plan::Command command;
  std::vector<KernelMemory> in, out; ///< one for each present operand that is not in place, and for each result
  /// Arrays point into `in` and `out`; `command` is set, and the place; scalars, fault and communicator are not.
  host::Binding binding;

  PreparedKernel() = default;
  PreparedKernel(const PreparedKernel &) = delete;
  llvm::SmallVector<Tensor, 1> results() const;
};

/// Has it a kernel of its own? Else it is a view, or is folded before a plan is made.
bool hasKernel(const Op &op);
/// The name of its kernel: a pointwise op becomes a fused group of one.
llvm::StringRef kernelOf(const OpDef &def);
/// Operands are handed over strided in every way that the op says its kernel takes, if `strided`. Requires: hasKernel.
std::unique_ptr<PreparedKernel> prepareKernel(const Op &op, llvm::ArrayRef<const Tensor *> operands, bool strided);

} // namespace shardc::test
