// SPDX-License-Identifier: Apache-2.0
#include "frontend/LastSelected.h"
#include "frontend/Nodes.h"
#include "onnx/onnx-ml.pb.h"

namespace shardc {
namespace {

using onnx::NodeProto;
using onnx::TensorProto;

void setAttr(NodeProto &node, const char *name, int64_t value) {
  onnx::AttributeProto *attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::INT);
  attr->set_i(value);
}

class Rewriter {
public:
  Rewriter(onnx::GraphProto &graph, ScalarOf scalar)
      : graph_(graph), scalar_(scalar), producers_(findProducers(graph)) {
    for (const TensorProto &tensor : graph.initializer())
      initializers_.try_emplace(tensor.name(), &tensor);
  }

  void run() {
    for (int i = 0, n = graph_.node_size(); i < n; ++i) {
      const NodeProto &gather = graph_.node(i);
      if (gather.op_type() != "Gather" || gather.input_size() != 2 || intAttribute(gather, "axis", 0) != 1 || !isMinusOne(gather.input(1)))
        continue;
      const NodeProto *view = producer(gather.input(0), "Reshape", 2);
      const NodeProto *shape = view ? producer(view->input(1), "Concat", 3) : nullptr; // [batch, -1, size]
      const NodeProto *rows = shape ? producer(view->input(0), "GatherND", 2) : nullptr;
      const NodeProto *turned = rows && intAttribute(*rows, "batch_dims", 0) == 0 ? producer(rows->input(1), "Transpose", 1) : nullptr;
      if (const NodeProto *selected = turned ? producer(turned->input(0), "NonZero", 1) : nullptr)
        rewrite(i, rows->input(0), selected->input(0));
    }
  }

private:
  const NodeProto *producer(llvm::StringRef name, llvm::StringRef type, int inputs) const {
    auto it = producers_.find(name);
    if (it == producers_.end())
      return nullptr;
    const NodeProto &node = graph_.node(it->second);
    return node.op_type() == type && node.input_size() == inputs ? &node : nullptr;
  }

  bool isMinusOne(llvm::StringRef name) const {
    const TensorProto *tensor = nullptr;
    if (auto it = initializers_.find(name); it != initializers_.end())
      tensor = it->second;
    else if (const NodeProto *constant = producer(name, "Constant", 0))
      for (const onnx::AttributeProto &attr : constant->attribute())
        tensor = attr.has_t() ? &attr.t() : tensor;
    return tensor && scalar_(*tensor) == -1;
  }

  void rewrite(int index, const std::string &data, const std::string &mask) {
    const std::string name = graph_.node(index).name(), result = graph_.node(index).output(0);
    auto add = [&](const char *type, const std::string &from, const char *suffix) -> NodeProto & {
      NodeProto &node = *graph_.add_node();
      node.set_op_type(type);
      node.set_name(name);
      node.add_input(from);
      node.add_output(result + suffix);
      return node;
    };
    NodeProto &truth = add("Cast", mask, ".mask");
    setAttr(truth, "to", TensorProto::BOOL);
    NodeProto &last = add("ArgMax", truth.output(0), ".last");
    setAttr(last, "axis", 1);
    setAttr(last, "select_last_index", 1);
    setAttr(last, "keepdims", 1);
    NodeProto &gather = *graph_.mutable_node(index);
    gather.set_op_type("GatherND");
    gather.clear_attribute();
    setAttr(gather, "batch_dims", 1);
    gather.set_input(0, data);
    gather.set_input(1, last.output(0));
  }

  onnx::GraphProto &graph_;
  ScalarOf scalar_;
  const llvm::StringMap<int> producers_;
  llvm::StringMap<const TensorProto *> initializers_;
};

} // namespace

void takeLastSelected(onnx::GraphProto &graph, ScalarOf scalar) { Rewriter(graph, scalar).run(); }

} // namespace shardc
