// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Graph.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/GraphMemsets.h"
#include <cassert>

namespace shardc::cuda {

llvm::Error Graph::capture(cudaStream_t stream, llvm::function_ref<llvm::Error()> enqueue,
                           llvm::ArrayRef<char> cleared) {
  assert(!exec_);
  // Thread-local: what other threads do meanwhile (NCCL's helpers, other ranks) is none of the capture's business.
  if (llvm::Error e = check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"))
    return e;
  llvm::Error error = enqueue();
  cudaGraph_t graph = nullptr;
  cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  if (!error)
    error = check(ended, "cudaStreamEndCapture");
  if (!error)
    error = dropMemsets(graph, cleared);
  if (!error)
    error = check(cudaGraphInstantiate(&exec_, graph, 0), "cudaGraphInstantiate");
  if (graph)
    cudaGraphDestroy(graph);
  if (!error) // so that the first launch allocates nothing
    error = check(cudaGraphUpload(exec_, stream), "cudaGraphUpload");
  return error;
}

llvm::Error Graph::launch(cudaStream_t stream) { return check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }

void Graph::destroy() {
  if (exec_)
    cudaGraphExecDestroy(exec_);
  exec_ = nullptr;
}

} // namespace shardc::cuda
