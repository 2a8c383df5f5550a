// SPDX-License-Identifier: Apache-2.0
#include "frontend/Nodes.h"
#include "onnx/onnx-ml.pb.h"

namespace shardc {

int64_t intAttribute(const onnx::NodeProto &node, llvm::StringRef name, int64_t otherwise) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return attribute.i();
  return otherwise;
}

llvm::StringMap<int> findProducers(const onnx::GraphProto &graph) {
  llvm::StringMap<int> producers;
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &name : graph.node(i).output())
      if (!name.empty())
        producers[name] = i;
  return producers;
}

} // namespace shardc
