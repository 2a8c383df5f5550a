// SPDX-License-Identifier: Apache-2.0
// What was enqueued once, kept as a CUDA graph, to be enqueued again by one call.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <cuda_runtime_api.h>
#include <utility>

namespace shardc::cuda {

class Graph {
public:
  Graph() = default;
  Graph(Graph &&other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}
  ~Graph() { destroy(); }

  /// Takes what `enqueue` enqueues on `stream`, and on others that it forks from there and joins again.
  /// Nothing of it runs. `cleared`: memory that is cleared before each launch, and whose parts are cleared in
  /// it once each, right before their use: the graph does without that.
  llvm::Error capture(cudaStream_t stream, llvm::function_ref<llvm::Error()> enqueue,
                      llvm::ArrayRef<char> cleared = {});
  explicit operator bool() const { return exec_; }
  /// Requires: captured.
  llvm::Error launch(cudaStream_t stream);
  /// Before the communicators whose calls it holds.
  void destroy();

private:
  cudaGraphExec_t exec_ = nullptr;
};

} // namespace shardc::cuda
