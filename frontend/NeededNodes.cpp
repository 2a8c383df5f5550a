// SPDX-License-Identifier: Apache-2.0
#include "frontend/NeededNodes.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

/// Names that a node reads, its subgraphs included.
template <typename F> static void forEachRead(const onnx::NodeProto &node, F visit, int depth = 0) {
  for (const std::string &name : node.input())
    if (!name.empty())
      visit(name);
  if (depth > 32)
    return;
  for (const onnx::AttributeProto &attr : node.attribute())
    if (attr.has_g()) {
      for (const onnx::NodeProto &inner : attr.g().node())
        forEachRead(inner, visit, depth + 1);
      for (const onnx::ValueInfoProto &output : attr.g().output())
        visit(output.name());
    }
}

NeededNodes findNeededNodes(const onnx::GraphProto &graph, llvm::StringRef output,
                            const llvm::DenseMap<int, MaskedLoss> &masked) {
  NeededNodes needed;
  auto need = [&](const std::string &name) { needed.names.insert(name); };
  for (const onnx::ValueInfoProto &o : graph.output())
    if (output.empty() || o.name() == output)
      need(o.name());
  needed.nodes.resize(graph.node_size());
  for (int i = graph.node_size(); i-- > 0;) { // from the end to the front
    const onnx::NodeProto &node = graph.node(i);
    needed.nodes[i] = llvm::any_of(node.output(), [&](const std::string &name) { return needed.names.contains(name); });
    if (!needed.nodes[i])
      continue;
    if (auto it = masked.find(i); it != masked.end())
      for (const std::string *name : {&it->second.scores, &it->second.labels, &it->second.mask})
        need(*name);
    else
      forEachRead(node, need);
  }
  return needed;
}

} // namespace shardc
