// SPDX-License-Identifier: Apache-2.0
// A host kernel: a command bound to its memory.
#pragma once

#include "ir/base/Tensor.h"
#include "ir/plan/Plan.h"

namespace shardc {
class Communicator;
}

namespace shardc::host {

class Fault;

/// Most dims that an operand may have.
constexpr unsigned kMaxRank = 8;

/// A bound operand. `data` is null for an absent one. Strides are in elements and always filled in.
struct Array {
  void *data = nullptr;
  DType dtype = DType::F32;
  Dims dims, strides;
  template <typename T> T *as() const { return static_cast<T *>(data); }
  explicit operator bool() const { return data; }
  int64_t numElements() const { return shardc::numElements(dims); }
  bool contiguous() const; ///< row-major without gaps
};

struct Binding {
  llvm::SmallVector<Array, 4> in;
  llvm::SmallVector<Array, 2> out;
  void *workspace = nullptr;
  int64_t workspaceBytes = 0;
  void *scratch = nullptr; ///< aligned for any number; shared by all commands of a stream. See Narrow.h
  int64_t scratchBytes = 0;
  const plan::Command *command = nullptr; ///< attributes; not needed after `bind`
  const double *scalars = nullptr;        ///< f64[kNumScalars], read when running
  std::string place;                      ///< for messages
  Fault *fault = nullptr;                 ///< where a running kernel reports bad values (Fault.h)
  Communicator *communicator = nullptr;   ///< the ranks that run together; null: one
};

/// Runs with what it precomputed: no allocation.
class Kernel {
public:
  virtual ~Kernel() = default;
  virtual void run() = 0;
};

using BoundKernel = llvm::Expected<std::unique_ptr<Kernel>>;
/// Checks operands and attributes completely (a plan is untrusted input) and precomputes
/// everything. Requires: every array lies inside memory, aligned, with rank <= kMaxRank.
using Bind = BoundKernel (*)(const Binding &);

/// By command kernel name; null if there is none. The list is runtime/host/Kernels.def. Most of them take no 16-bit floats:
/// see bindNarrow.
Bind findKernel(llvm::StringRef name);
llvm::ArrayRef<llvm::StringRef> kernelNames();

} // namespace shardc::host
