// SPDX-License-Identifier: Apache-2.0
#include "frontend/MaskedLoss.h"
#include "frontend/Emitter.h"
#include "frontend/Nodes.h"
#include <optional>

namespace shardc {
namespace {

struct Finder {
  const onnx::GraphProto &graph;
  const llvm::StringMap<int> &producers;

  const onnx::NodeProto *producer(llvm::StringRef name) const {
    auto it = producers.find(name);
    return it == producers.end() ? nullptr : &graph.node(it->second);
  }

  /// Follows operand 0 through nodes that only change dims or type.
  const onnx::NodeProto *origin(llvm::StringRef name) const {
    for (int steps = 0; steps < 64; ++steps) {
      const onnx::NodeProto *node = producer(name);
      if (!node || node->input_size() == 0)
        return node;
      llvm::StringRef type = node->op_type();
      if (type != "Cast" && type != "Reshape" && type != "Expand" && type != "Transpose" &&
          type != "Squeeze" && type != "Unsqueeze" && type != "Flatten" && type != "Identity")
        return node;
      name = node->input(0);
    }
    return nullptr;
  }

  struct Selection {
    std::string data, mask;
  };
  /// `name` holds rows of `data` that `mask` selects, whole or as elements of a row-wise index.
  std::optional<Selection> selection(llvm::StringRef name) const {
    const onnx::NodeProto *gather = origin(name);
    if (!gather || gather->input_size() != 2)
      return std::nullopt;
    llvm::StringRef type = gather->op_type();
    if (type != "GatherElements" && type != "Gather" && type != "GatherND")
      return std::nullopt;
    for (const onnx::AttributeProto &attr : gather->attribute())
      if (attr.i() != 0)
        return std::nullopt; // axis, batch_dims
    const onnx::NodeProto *nonZero = origin(gather->input(1));
    if (!nonZero || nonZero->op_type() != "NonZero" || nonZero->input_size() != 1)
      return std::nullopt;
    return Selection{gather->input(0), nonZero->input(0)};
  }
};

} // namespace

llvm::DenseMap<int, MaskedLoss> findMaskedLosses(const onnx::GraphProto &graph) {
  const llvm::StringMap<int> producers = findProducers(graph);
  llvm::DenseMap<int, MaskedLoss> found;
  Finder finder{graph, producers};
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto &node = graph.node(i);
    if ((node.op_type() != "SoftmaxCrossEntropyLoss" &&
         node.op_type() != "NegativeLogLikelihoodLoss") ||
        node.input_size() != 2 || node.output_size() != 1)
      continue;
    auto scores = finder.selection(node.input(0)), labels = finder.selection(node.input(1));
    if (scores && labels && scores->mask == labels->mask)
      found[i] = {scores->data, labels->data, labels->mask};
  }
  return found;
}

Value *maskedLabels(Emitter &b, const onnx::NodeProto &node, Value *labels, Value *mask) {
  if (labels->type().rank() != 1 || mask->type().dims != labels->type().dims ||
      mask->type().dtype != DType::Bool) {
    b.fail("rows selected by a condition: got labels " + toString(labels->type()) +
            " and a condition " + toString(mask->type()) +
            ", wanted one label and one condition a row");
    return nullptr;
  }
  int64_t ignore = -100;
  for (const onnx::AttributeProto &attr : node.attribute())
    if (attr.name() == "ignore_index")
      ignore = attr.i();
  return b.where(mask, b.cast(labels, DType::I64), b.integer(ignore));
}

} // namespace shardc
