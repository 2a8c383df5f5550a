// SPDX-License-Identifier: Apache-2.0
// Binds one host kernel to arrays of its own and runs it; compares kernels with the op table's
// references.
#pragma once

#include "ir/graph/Attr.h"
#include "ir/ops/OpDef.h"
#include "runtime/host/Fault.h"
#include "runtime/host/Kernel.h"

namespace shardc::host {

/// How an operand lies in memory.
enum class Lay { Dense, Gaps, LastStrided };

/// One command with its arrays. Each array is an allocation of its own, of just the bytes it needs,
/// so that the address sanitizer sees every step outside.
class KernelRun {
public:
  explicit KernelRun(llvm::StringRef kernel);
  KernelRun &attr(llvm::StringRef name, Attr value);
  KernelRun &in(const Tensor &tensor, Lay lay = Lay::Dense);
  KernelRun &broadcast(const Tensor &tensor, llvm::ArrayRef<int64_t> dims); ///< strides 0
  KernelRun &absent();
  KernelRun &out(DType dtype, llvm::ArrayRef<int64_t> dims);
  KernelRun &outOver(unsigned input); ///< in the memory of that operand
  double *scalars() { return scalars_; }
  Binding &binding() { return binding_; }

  llvm::Error bind();
  /// Requires: bound. The error is that of the data (an index out of range).
  llvm::Error run();
  llvm::Error bindAndRun();
  Tensor result(unsigned i = 0) const;

private:
  Array array(DType dtype, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> strides);
  plan::Command command_;
  Binding binding_;
  Fault fault_;
  double scalars_[32] = {};
  std::vector<std::unique_ptr<char[]>> memory_;
  std::unique_ptr<Kernel> kernel_;
};

/// Values that look random, in [low, high), the same every time. Ints are rounded down.
Tensor noise(DType dtype, llvm::ArrayRef<int64_t> dims, uint64_t seed, double low = -1,
             double high = 1);
/// The same values in another float type; other dtypes as they are.
Tensor asFloats(const Tensor &tensor, DType dtype);

/// |a - b| <= tolerance (1 + |b|) in every element; equal for integers; NaN and infinities agree.
void expectNear(const Tensor &a, const Tensor &b, double tolerance, llvm::StringRef what);
void expectEqual(const Tensor &a, const Tensor &b, llvm::StringRef what);

/// A case of an op: float operands in F64; a tensor without bytes is an absent operand.
struct OpCase {
  const OpDef &def;
  std::vector<Tensor> in;
  Attrs attrs;
  double tolerance = 1e-5; ///< of f32; f64 has 1e-12
};

/// Runs the kernel in f32 and f64, dense and strided where the op's `layouts` allow, in place where
/// it may be, on one thread and on all: results are the reference's, and no bit depends on the
/// threads.
void expectReference(const OpCase &test);

std::string messageOf(llvm::Error error);

/// Calls of operator new so far, in the whole program.
uint64_t allocations();

} // namespace shardc::host
