// SPDX-License-Identifier: Apache-2.0
#include "frontend/InlineFunctions.h"
#include "frontend/NormaliseGraph.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include "onnx/onnx-ml.pb.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <vector>

namespace shardc {
namespace {

using onnx::AttributeProto, onnx::FunctionProto, onnx::GraphProto, onnx::NodeProto;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;
using Attributes = google::protobuf::RepeatedPtrField<AttributeProto>;

/// Two functions calling the next one twice, forty levels deep, would fill any memory.
constexpr size_t kMaxNodes = 200000;
constexpr size_t kMaxCallDepth = 64;
constexpr size_t kMaxBytes = size_t(64) << 20;

std::string key(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload) {
  if (domain == "ai.onnx")
    domain = "";
  return (domain + "::" + name + (overload.empty() ? "" : ":" + overload)).str();
}

std::string key(const NodeProto &node) {
  return key(node.domain(), node.op_type(), node.overload());
}

bool hasGraph(const AttributeProto &attribute) {
  return attribute.has_g() || attribute.graphs_size();
}

/// How one call's body is rewritten: names of values, and the attributes that replace references.
struct Call {
  std::string prefix;
  llvm::StringMap<std::string> values;
  llvm::StringMap<const AttributeProto *> attributes;
  const NodeProto *node = nullptr;
};

class Inliner {
public:
  Inliner(const onnx::ModelProto &model, llvm::StringRef place) : place_(place) {
    for (const onnx::OperatorSetIdProto &opset : model.opset_import())
      if (opset.domain().empty() || opset.domain() == "ai.onnx")
        opset_ = opset.version();
  }

  llvm::Error addFunction(const FunctionProto &function) {
    std::string name = key(function.domain(), function.name(), function.overload());
    if (!functions_.try_emplace(name, &function).second)
      return wrong("function " + quoted(name) + " is there twice");
    for (const onnx::OperatorSetIdProto &opset : function.opset_import())
      if ((opset.domain().empty() || opset.domain() == "ai.onnx") && opset.version() != opset_)
        return wrong("function " + quoted(name) + " is of another opset than the model: got " +
                     llvm::Twine(opset.version()) + ", wanted " + llvm::Twine(opset_));
    for (const AttributeProto &attribute : function.attribute_proto())
      if (hasGraph(attribute))
        return wrong("function " + quoted(name) +
                     " has a graph as default, which is not supported");
    return llvm::Error::success();
  }

  /// Refuses recursion and too many nodes before anything is expanded.
  llvm::Error judge(const GraphProto &graph) {
    llvm::Expected<size_t> size = count(graph.node());
    if (!size)
      return size.takeError();
    if (*size > kMaxNodes)
      return wrong("functions expand to more than " + llvm::Twine(kMaxNodes) + " nodes");
    return llvm::Error::success();
  }

  llvm::Error graph(GraphProto &graph) { return nodes(*graph.mutable_node()); }

private:
  /// Nodes that `list` expands to; no more than kMaxNodes + 1.
  llvm::Expected<size_t> count(const Nodes &list) {
    size_t sum = 0;
    auto add = [&](llvm::Expected<size_t> more) -> llvm::Error {
      if (more)
        sum = std::min(sum + *more, kMaxNodes + 1);
      return more.takeError();
    };
    for (const NodeProto &node : list) {
      std::string name = key(node);
      auto function = functions_.find(name);
      bool isCall = function != functions_.end();
      if (!isCall)
        sum = std::min(sum + 1, kMaxNodes + 1);
      else if (llvm::Error error = add(count(name, *function->second)))
        return error;
      for (const AttributeProto &attribute : node.attribute()) {
        if (isCall && hasGraph(attribute)) // could double with every level of calls
          return wrong(describeNode(node) + " gives a graph to a function, which is not supported");
        if (attribute.has_g())
          if (llvm::Error error = add(count(attribute.g().node())))
            return error;
        for (const GraphProto &inner : attribute.graphs())
          if (llvm::Error error = add(count(inner.node())))
            return error;
      }
    }
    return sum;
  }

  llvm::Expected<size_t> count(const std::string &name, const FunctionProto &function) {
    if (auto known = counts_.find(name); known != counts_.end())
      return known->second;
    if (llvm::is_contained(stack_, name) || stack_.size() >= kMaxCallDepth) {
      std::string chain;
      for (const std::string &caller : stack_)
        chain += caller + " -> ";
      return wrong("function calls itself or is nested too deeply: " + quoted(chain + name));
    }
    stack_.push_back(name);
    llvm::Expected<size_t> size = count(function.node());
    stack_.pop_back();
    if (size)
      counts_.try_emplace(name, *size);
    return size;
  }

  llvm::Error wrong(const llvm::Twine &what) { return userError(place_ + ": " + what); }

  llvm::Error nodes(Nodes &list) {
    Nodes result;
    for (NodeProto &node : list)
      if (llvm::Error error = append(node, result))
        return error;
    list.Swap(&result);
    return llvm::Error::success();
  }

  /// Moves `node`, or the body that it calls, to the end of `result`.
  llvm::Error append(NodeProto &node, Nodes &result) {
    for (AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        if (llvm::Error error = graph(*attribute.mutable_g()))
          return error;
      for (GraphProto &inner : *attribute.mutable_graphs())
        if (llvm::Error error = graph(inner))
          return error;
    }
    std::string name = key(node);
    auto function = functions_.find(name);
    if (function == functions_.end()) {
      result.Add()->Swap(&node);
      return llvm::Error::success();
    }
    return expand(node, *function->second, result);
  }

  llvm::Error expand(const NodeProto &node, const FunctionProto &function, Nodes &result) {
    if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
      return wrong(describeNode(node) + " has too many inputs or outputs for its function: got " +
                   llvm::Twine(node.input_size()) + " and " + llvm::Twine(node.output_size()) +
                   ", wanted at most " + llvm::Twine(function.input_size()) + " and " +
                   llvm::Twine(function.output_size()));
    Call call;
    call.node = &node;
    llvm::StringRef name = node.name().empty() && node.output_size() ? node.output(0) : node.name();
    call.prefix = (name + "/").str();
    if (!prefixes_.insert(call.prefix).second) // two calls of one name
      call.prefix = (name + "#" + llvm::Twine(prefixes_.size()) + "/").str();
    for (int i = 0; i < function.input_size(); ++i)
      call.values[function.input(i)] = i < node.input_size() ? node.input(i) : std::string();
    // An output that is an input, or stands in the list twice, needs a node of its own to get its
    // name.
    std::vector<std::pair<std::string, std::string>> copies;
    for (int i = 0; i < node.output_size(); ++i)
      if (!node.output(i).empty() &&
          !call.values.try_emplace(function.output(i), node.output(i)).second)
        copies.push_back({call.values[function.output(i)], node.output(i)});
    for (const AttributeProto &attribute : function.attribute_proto())
      call.attributes[attribute.name()] = &attribute;
    for (const AttributeProto &attribute : node.attribute())
      call.attributes[attribute.name()] = &attribute;

    for (const NodeProto &inner : function.node()) {
      bytes_ += inner.ByteSizeLong();
      if (bytes_ > kMaxBytes)
        return wrong("functions expand to more than 64 MiB");
      NodeProto copy = inner;
      rewrite(copy, call);
      if (llvm::Error error = append(copy, result))
        return error;
    }
    for (auto &[from, to] : copies) {
      NodeProto *identity = result.Add();
      identity->set_op_type("Identity");
      identity->set_name(call.prefix + to);
      identity->add_input(from);
      identity->add_output(to);
    }
    return llvm::Error::success();
  }

  void rename(std::string &name, const Call &call) {
    if (name.empty())
      return;
    auto known = call.values.find(name);
    name = known != call.values.end() ? known->second : call.prefix + name;
  }

  void rewrite(NodeProto &node, const Call &call) {
    for (std::string &name : *node.mutable_input())
      rename(name, call);
    for (std::string &name : *node.mutable_output())
      rename(name, call);
    node.set_name(call.prefix + (node.name().empty() ? node.op_type() : node.name()));
    if (!node.metadata_props_size()) // where the exporter says nothing of the body, the call's
                                     // origin is the body's
      *node.mutable_metadata_props() = call.node->metadata_props();
    Attributes attributes;
    for (AttributeProto &attribute : *node.mutable_attribute()) {
      if (!attribute.ref_attr_name().empty()) {
        auto given = call.attributes.find(attribute.ref_attr_name());
        if (given == call.attributes.end())
          continue; // an optional attribute that the caller left out
        bytes_ += given->second->ByteSizeLong();
        if (bytes_ > kMaxBytes)
          continue; // expand() tells
        AttributeProto *value = attributes.Add();
        *value = *given->second;
        value->set_name(attribute.name());
        continue;
      }
      if (attribute.has_g())
        rewrite(*attribute.mutable_g(), call);
      for (GraphProto &graph : *attribute.mutable_graphs())
        rewrite(graph, call);
      attributes.Add()->Swap(&attribute);
    }
    node.mutable_attribute()->Swap(&attributes);
  }

  void rewrite(GraphProto &graph, const Call &call) {
    for (onnx::ValueInfoProto &value : *graph.mutable_input())
      rename(*value.mutable_name(), call);
    for (onnx::ValueInfoProto &value : *graph.mutable_output())
      rename(*value.mutable_name(), call);
    for (onnx::TensorProto &tensor : *graph.mutable_initializer())
      rename(*tensor.mutable_name(), call);
    for (NodeProto &node : *graph.mutable_node())
      rewrite(node, call);
  }

  llvm::StringRef place_;
  int64_t opset_ = 0;
  llvm::StringMap<const FunctionProto *> functions_;
  std::vector<std::string> stack_; ///< functions that are being counted
  llvm::StringMap<size_t> counts_; ///< nodes that each expands to
  llvm::StringSet<> prefixes_;
  size_t bytes_ = 0; ///< copied so far
};

} // namespace

llvm::Error inlineFunctions(onnx::ModelProto &model, llvm::StringRef place) {
  if (!model.functions_size())
    return llvm::Error::success();
  Inliner inliner(model, place);
  for (const FunctionProto &function : model.functions())
    if (llvm::Error error = inliner.addFunction(function))
      return error;
  if (llvm::Error error = inliner.judge(model.graph()))
    return error;
  if (llvm::Error error = inliner.graph(*model.mutable_graph()))
    return error;
  model.clear_functions();
  return llvm::Error::success();
}

} // namespace shardc
