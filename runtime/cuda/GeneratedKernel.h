// SPDX-License-Identifier: Apache-2.0
// A kernel whose source was made for one command, with its arguments; it is launched early (EarlyLaunch.h).
#pragma once

#include "runtime/cuda/EarlyLaunch.h"
#include "runtime/cuda/Kernel.h"
#include <vector>

namespace shardc::cuda {

/// What its source says first.
constexpr llvm::StringLiteral kAwaitStream = "  asm volatile(\"" SHARDC_AWAIT_STREAM "\" ::: \"memory\");\n";

class GeneratedKernel final : public Kernel {
public:
  /// What the arguments of a kernel may have.
  static constexpr size_t kMaxWords = 4000 / 8;

  /// Requires: at most kMaxWords words, which are the kernel's one argument.
  GeneratedKernel(cudaKernel_t kernel, std::vector<uint64_t> words, unsigned blocks, unsigned threads)
      : kernel_(kernel), words_(std::move(words)), blocks_(blocks), threads_(threads) {}
  llvm::Error launch(cudaStream_t stream) override;

private:
  cudaKernel_t kernel_;
  std::vector<uint64_t> words_;
  unsigned blocks_, threads_;
};

} // namespace shardc::cuda
