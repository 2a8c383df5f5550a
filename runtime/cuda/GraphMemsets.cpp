// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/GraphMemsets.h"
#include "runtime/cuda/Device.h"

namespace shardc::cuda {
namespace {

using Nodes = std::vector<cudaGraphNode_t>;

// CUDA 13 has one name for both forms: with what an edge is beside its ends.
#if CUDART_VERSION >= 13000
cudaError_t nodesBefore(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return cudaGraphNodeGetDependencies(node, nodes, nullptr, count);
}
cudaError_t nodesBehind(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count);
}
cudaError_t addEdge(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, 1);
}
#else
cudaError_t nodesBefore(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return cudaGraphNodeGetDependencies(node, nodes, count);
}
cudaError_t nodesBehind(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return cudaGraphNodeGetDependentNodes(node, nodes, count);
}
cudaError_t addEdge(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to) {
  return cudaGraphAddDependencies(graph, from, to, 1);
}
#endif

/// `ask(array or null, count)`
template <typename F> llvm::Expected<Nodes> nodesBy(F ask, const char *call) {
  size_t count = 0;
  if (llvm::Error error = check(ask(nullptr, &count), call))
    return error;
  Nodes nodes(count);
  if (count)
    if (llvm::Error error = check(ask(nodes.data(), &count), call))
      return error;
  return nodes;
}

llvm::Expected<bool> clears(cudaGraphNode_t node, llvm::ArrayRef<char> region) {
  cudaGraphNodeType type;
  if (llvm::Error error = check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType"))
    return error;
  if (type != cudaGraphNodeTypeMemset)
    return false;
  cudaMemsetParams memset = {};
  if (llvm::Error error = check(cudaGraphMemsetNodeGetParams(node, &memset), "cudaGraphMemsetNodeGetParams"))
    return error;
  const char *to = static_cast<const char *>(memset.dst);
  return memset.value == 0 && memset.height <= 1 && to >= region.begin() && to < region.end();
}

llvm::Error drop(cudaGraph_t graph, cudaGraphNode_t node) {
  auto before = nodesBy([&](cudaGraphNode_t *to, size_t *count) { return nodesBefore(node, to, count); },
                        "cudaGraphNodeGetDependencies");
  if (!before)
    return before.takeError();
  auto behind = nodesBy([&](cudaGraphNode_t *to, size_t *count) { return nodesBehind(node, to, count); },
                        "cudaGraphNodeGetDependentNodes");
  if (!behind)
    return behind.takeError();
  for (const cudaGraphNode_t &from : *before)
    for (const cudaGraphNode_t &to : *behind)
      if (llvm::Error error = check(addEdge(graph, &from, &to), "cudaGraphAddDependencies"))
        return error;
  return check(cudaGraphDestroyNode(node), "cudaGraphDestroyNode");
}

} // namespace

llvm::Error dropMemsets(cudaGraph_t graph, llvm::ArrayRef<char> region) {
  auto nodes =
      nodesBy([&](cudaGraphNode_t *to, size_t *count) { return cudaGraphGetNodes(graph, to, count); },
              "cudaGraphGetNodes");
  if (!nodes)
    return nodes.takeError();
  for (cudaGraphNode_t node : *nodes) {
    auto found = clears(node, region);
    if (!found)
      return found.takeError();
    if (*found)
      if (llvm::Error error = drop(graph, node))
        return error;
  }
  return llvm::Error::success();
}

} // namespace shardc::cuda
