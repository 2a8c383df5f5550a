// SPDX-License-Identifier: Apache-2.0
// Times the algorithms of products, and lets each product use the fastest.
#pragma once

#include "runtime/cuda/Counters.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/LtMatMul.h"
#include "runtime/cuda/TuningFile.h"

namespace shardc {
class Communicator;
}

namespace shardc::cuda {

/// Collects products while kernels are bound, then decides for all of them at once. Rank 0 decides: it takes what the tuning
/// file says, times what the file lacks, and adds it to the file; the others are told.
class Tuner {
public:
  /// `path`: the tuning file, "": none, and the library's first answers; `communicator`: null for one rank; `arena`: memory
  /// that products may lie in.
  Tuner(std::string path, Device &device, Communicator *communicator, llvm::MutableArrayRef<char> arena = {},
        Counters *counters = nullptr)
      : path_(std::move(path)), device_(device), communicator_(communicator), arena_(arena),
        counters_(counters) {}

  /// What products have for themselves. Null: they share the workspace.
  Counters *counters() const { return counters_; }
  /// The product stays where it is until `settle`. Small ones are left with the library's first answer. The workspace holds kProductWorkspace bytes.
  void add(LtProduct &product, const Operands &operands, KernelScratch workspace);
  /// All ranks call it, after the same plan. The arena, and what the products read and write, hold anything afterwards. Errors: of the
  /// device; a rank has failed. Where the file cannot be written, what it lacks stays with the library's first answer: so
  /// every run gives the same bits.
  llvm::Error settle();
  /// Has `settle` of this rank written to memory that products use?
  bool hasScribbled() const { return timed_ > 0; }
  /// Products that it has timed: no other rank has.
  unsigned timed() const { return timed_; }

private:
  struct Open {
    LtProduct *product;
    Operands operands;
    KernelScratch workspace;
    std::string key;
  };
  /// Of rank 0: what to use for each key.
  llvm::Expected<Tuning> decide();
  llvm::Error share(Tuning &tuning);

  std::string path_;
  Device &device_;
  Communicator *communicator_;
  llvm::MutableArrayRef<char> arena_;
  Counters *counters_;
  std::vector<Open> products_;
  unsigned timed_ = 0;
};

} // namespace shardc::cuda
