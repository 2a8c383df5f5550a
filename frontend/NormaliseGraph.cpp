// SPDX-License-Identifier: Apache-2.0
#include "frontend/NormaliseGraph.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include "onnx/onnx-ml.pb.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <queue>
#include <vector>

namespace shardc {
namespace {

using onnx::AttributeProto, onnx::GraphProto, onnx::NodeProto;

/// Names that a graph reads from the graphs around it, in the order of first use; each with a node
/// that reads it.
class FreeNames {
public:
  void add(llvm::StringRef name, const std::string &reader) {
    if (seen_.try_emplace(name).second)
      names_.push_back({name.str(), reader});
  }
  struct Entry {
    std::string name, reader;
  };
  llvm::ArrayRef<Entry> entries() const { return names_; }

private:
  std::vector<Entry> names_;
  llvm::StringMap<char> seen_;
};

class Normaliser {
public:
  Normaliser(GraphProto &graph, llvm::StringRef place, bool topLevel)
      : graph_(graph), place_(place), topLevel_(topLevel) {}

  /// Leaves in `outer` what the graph reads from outside.
  llvm::Error run(FreeNames &outer) {
    if (llvm::Error error = define())
      return error;
    if (llvm::Error error = connect(outer))
      return error;
    return sort();
  }

private:
  llvm::Error wrong(const llvm::Twine &what) { return userError(place_ + ": " + what); }

  /// Enters everything that the graph defines into `producers_`.
  llvm::Error define() {
    if (graph_.sparse_initializer_size())
      return wrong("sparse initializer " + quoted(graph_.sparse_initializer(0).values().name()) +
                   " is not supported");
    for (const onnx::TensorProto &tensor : graph_.initializer()) {
      if (tensor.name().empty())
        return wrong("an initializer has no name");
      if (!producers_.try_emplace(tensor.name(), kOutside).second)
        return wrong("two initializers have one name: got " + quoted(tensor.name()) +
                     " twice, wanted unique names");
    }
    if (topLevel_) { // IR 3 lists initializers as inputs too: as defaults, which nobody overrides
                     // here
      auto *inputs = graph_.mutable_input();
      auto kept = std::stable_partition(
          inputs->pointer_begin(), inputs->pointer_end(),
          [&](const onnx::ValueInfoProto *input) { return !producers_.contains(input->name()); });
      inputs->DeleteSubrange(kept - inputs->pointer_begin(), inputs->pointer_end() - kept);
    }
    for (const onnx::ValueInfoProto &input : graph_.input()) {
      if (input.name().empty())
        return wrong("a graph input has no name");
      if (!producers_.try_emplace(input.name(), kOutside).second)
        return wrong("graph input " + quoted(input.name()) + " is there twice");
    }
    for (int i = 0; i < graph_.node_size(); ++i)
      for (const std::string &output : graph_.node(i).output())
        if (!output.empty() && !producers_.try_emplace(output, i).second)
          return wrong(describeNode(graph_.node(i)) +
                       " defines a value that is defined already: got " + quoted(output) +
                       ", wanted a new name");
    return llvm::Error::success();
  }

  llvm::Error connect(FreeNames &outer) {
    before_.resize(graph_.node_size());
    auto use = [&](int node, llvm::StringRef name, const std::string &reader) {
      auto producer = producers_.find(name);
      if (producer == producers_.end())
        outer.add(name, reader);
      else if (producer->second != kOutside && node >= 0)
        before_[node].insert(producer->second);
    };
    for (int i = 0; i < graph_.node_size(); ++i) {
      NodeProto &node = *graph_.mutable_node(i);
      std::string reader = describeNode(node);
      for (const std::string &input : node.input())
        if (!input.empty())
          use(i, input, reader);
      for (AttributeProto &attribute : *node.mutable_attribute()) {
        if (attribute.has_sparse_tensor() || attribute.sparse_tensors_size())
          return wrong(reader + ": sparse tensors are not supported (attribute " +
                       quoted(attribute.name()) + ")");
        auto subgraph = [&](GraphProto &inner) -> llvm::Error {
          FreeNames captured;
          if (llvm::Error error = Normaliser(inner, place_, /*topLevel=*/false).run(captured))
            return error;
          for (const FreeNames::Entry &entry : captured.entries())
            use(i, entry.name, entry.reader);
          return llvm::Error::success();
        };
        if (attribute.has_g())
          if (llvm::Error error = subgraph(*attribute.mutable_g()))
            return error;
        for (GraphProto &inner : *attribute.mutable_graphs())
          if (llvm::Error error = subgraph(inner))
            return error;
      }
    }
    if (topLevel_ && !graph_.output_size())
      return wrong("the graph has no outputs");
    for (const onnx::ValueInfoProto &output : graph_.output()) {
      if (output.name().empty())
        return wrong("a graph output has no name");
      use(-1, output.name(), "the list of graph outputs");
    }
    return llvm::Error::success();
  }

  llvm::Error sort() {
    int size = graph_.node_size();
    bool sorted = true;
    for (int i = 0; i < size; ++i)
      for (int producer : before_[i])
        sorted &= producer < i;
    if (sorted)
      return llvm::Error::success();

    std::vector<std::vector<int>> after(size);
    std::vector<int> missing(size);
    std::priority_queue<int, std::vector<int>, std::greater<int>>
        ready; // lowest number first: stable
    for (int i = 0; i < size; ++i) {
      missing[i] = before_[i].size();
      for (int producer : before_[i])
        after[producer].push_back(i);
      if (!missing[i])
        ready.push(i);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      int node = ready.top();
      ready.pop();
      order.push_back(node);
      for (int user : after[node])
        if (!--missing[user])
          ready.push(user);
    }
    if (int(order.size()) != size)
      return cycle(missing);

    google::protobuf::RepeatedPtrField<NodeProto> nodes;
    nodes.Reserve(size);
    for (int i : order)
      nodes.Add()->Swap(graph_.mutable_node(i));
    graph_.mutable_node()->Swap(&nodes);
    return llvm::Error::success();
  }

  /// Every node that is left waits for another one that is left: walking back must come round.
  llvm::Error cycle(llvm::ArrayRef<int> missing) {
    int node = 0;
    while (!missing[node])
      ++node;
    llvm::SetVector<int> path;
    while (path.insert(node))
      node = *llvm::find_if(before_[node], [&](int producer) { return missing[producer] > 0; });
    auto start = llvm::find(path, node);
    std::string text = describeNode(graph_.node(node));
    unsigned shown = 0;
    // The path runs against the flow of data.
    for (auto it = path.end(); it != start && ++shown <= 8;)
      text += " -> " + describeNode(graph_.node(*--it));
    return wrong("the nodes form a cycle: got " + text + (shown > 8 ? " -> ..." : "") +
                 ", wanted none");
  }

  static constexpr int kOutside = -1;
  GraphProto &graph_;
  llvm::StringRef place_;
  bool topLevel_;
  llvm::StringMap<int> producers_; ///< node that defines a name; kOutside: input or initializer
  std::vector<llvm::SmallSetVector<int, 4>> before_;
};

} // namespace

std::string describeNode(const NodeProto &node) {
  llvm::StringRef name = node.name();
  if (name.empty() && node.output_size())
    name = node.output(0);
  std::string op = node.op_type();
  if (!node.domain().empty())
    op = node.domain() + "::" + op;
  return "node " + quoted(name) + " (" + quoted(op).substr(1, quoted(op).size() - 2) + ")";
}

llvm::Error normaliseGraph(GraphProto &graph, llvm::StringRef place) {
  FreeNames undefined;
  if (llvm::Error error = Normaliser(graph, place, /*topLevel=*/true).run(undefined))
    return error;
  if (undefined.entries().empty())
    return llvm::Error::success();
  const FreeNames::Entry &first = undefined.entries().front();
  size_t more = undefined.entries().size() - 1;
  return userError(place + ": " + first.reader + " reads a value that nothing defines: got " +
                   quoted(first.name) + ", wanted an input, initializer or result" +
                   (more ? " (and " + llvm::Twine(more) + " more such names)" : llvm::Twine()));
}

} // namespace shardc
