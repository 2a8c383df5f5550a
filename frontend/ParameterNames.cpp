// SPDX-License-Identifier: Apache-2.0
#include "frontend/ParameterNames.h"
#include "frontend/FoldedParameters.h"
#include "frontend/NameRules.h"
#include "frontend/OnnxFile.h"
#include "frontend/Quoted.h"
#include "frontend/SameValues.h"
#include "ir/base/Error.h"
#include "ir/base/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace shardc {
namespace {

using onnx::AttributeProto, onnx::GraphProto, onnx::NodeProto, onnx::TensorProto;

/// A parameter while it is being put together; `parameter` has its final form but for the wrapper's
/// prefix.
struct Draft {
  ModelParameter parameter;
  bool told = false;    ///< the file itself tells the name
  int root = 0;         ///< initializer that `parameter.source` is of
  int mergedInto = -1;  ///< index of the draft that this one is tied to
  bool flipped = false; ///< ... whose transpose it is
};

/// A place that reads a parameter; node < 0 for one in a subgraph.
struct Place {
  int node = 0, input = 0;
  std::string value;
  int draft = 0;
  bool transposed = false;
};

class Finder {
public:
  Finder(const OnnxModel &model, const ParameterOptions &options)
      : model_(model), options_(options),
        rules_(model, options.untie == ParameterOptions::Untie::Never) {}

  llvm::Expected<ParameterTable> run() {
    collect(model_.graph(), /*topLevel=*/true);
    rules_.learnCalls(reads_);
    for (const ParameterRead &read : reads_)
      place(read);
    addDroppedBiases();
    tieByValue();
    if (llvm::Error error = tieByOption())
      return error;
    ParameterTable table = finish();
    if (llvm::Error error = refuseFolded(model_, rules_.signature(), table))
      return error;
    return table;
  }

private:
  /// Enters every read of a float initializer, seen through Identity nodes.
  void collect(const GraphProto &graph, bool topLevel) {
    if (topLevel)
      for (const TensorProto &tensor : graph.initializer())
        if (isFloat(model_.source(tensor).dtype)) {
          roots_.try_emplace(tensor.name(), int(tensors_.size()));
          tensors_.push_back(&tensor);
        }
    for (int i = 0; i < graph.node_size(); ++i) {
      const NodeProto &node = graph.node(i);
      if (topLevel && node.op_type() == "Identity" && node.domain().empty() &&
          node.input_size() == 1 && node.output_size() == 1)
        if (auto root = roots_.find(node.input(0)); root != roots_.end()) {
          int index = root->second; // try_emplace may move the entry
          roots_.try_emplace(node.output(0), index);
          continue;
        }
      for (int k = 0; k < node.input_size(); ++k)
        if (auto root = roots_.find(node.input(k)); root != roots_.end())
          reads_.push_back({&node, topLevel ? i : -1, k, tensors_[root->second],
                            &model_.source(*tensors_[root->second]), root->second});
      for (const AttributeProto &attribute : node.attribute()) {
        if (attribute.has_g())
          collect(attribute.g(), /*topLevel=*/false);
        for (const GraphProto &inner : attribute.graphs())
          collect(inner, /*topLevel=*/false);
      }
    }
  }

  void place(const ParameterRead &read) {
    std::optional<ParameterName> name = rules_.name(read);
    if (!name)
      return;
    int draft = findDraft(read, *name);
    places_.push_back(
        {read.nodeIndex, read.input, read.valueName().str(), draft, name->transposed});
  }

  Draft makeDraft(const ParameterRead &read, const ParameterName &name) {
    Draft draft;
    draft.told = name.told;
    draft.root = read.root;
    ModelParameter &p = draft.parameter;
    p.name = name.name;
    p.source = *read.source;
    p.dtype = p.source.dtype;
    p.transposed = name.transposed;
    p.dims = p.source.dims;
    if (p.transposed)
      std::swap(p.dims[0], p.dims[1]);
    return draft;
  }

  /// The draft of that name; sets the initializer's orientation. Two initializers may have one
  /// name: a weight and a folded transpose of it.
  int findDraft(const ParameterRead &read, ParameterName &name) {
    auto [seen, isNew] = seen_.try_emplace({read.root, name.name});
    if (isNew)
      seen->second = {enterDraft(read, name), name.transposed};
    name.transposed = seen->second.second;
    return seen->second.first;
  }

  int enterDraft(const ParameterRead &read, const ParameterName &name) {
    int number = drafts_.size();
    Draft fresh = makeDraft(read, name);
    auto [known, isNew] = byName_.try_emplace(name.name, number);
    if (isNew) {
      drafts_.push_back(std::move(fresh));
      return number;
    }
    Draft &draft = drafts_[known->second];
    ModelParameter &p = draft.parameter;
    bool valuesThere = p.source.data && read.source->data;
    bool same = p.dims == fresh.parameter.dims && p.dtype == fresh.parameter.dtype &&
                (!valuesThere ||
                 sameValues(p.source, *read.source, p.transposed != fresh.parameter.transposed));
    if (same) {
      if (p.transposed &&
          !fresh.parameter.transposed) { // rather the weight itself than its transpose
        fresh.told |= draft.told;
        draft = std::move(fresh);
      }
      return known->second;
    }
    // The name belongs to the initializer that has it, if one of the two has; the other keeps its
    // own.
    bool isOwner = read.tensor->name() == name.name;
    Draft &loser = isOwner ? draft : fresh;
    std::string own = tensors_[loser.root]->name();
    notes_.push_back("initializer " + quoted(own) + " seems to be " + quoted(name.name) +
                     ", but another one of that name has other values: kept apart");
    if (isOwner)
      known->second = number;
    while (!byName_.try_emplace(own, isOwner ? &draft - drafts_.data() : number).second)
      own += "'";
    loser.parameter.name = own;
    drafts_.push_back(std::move(fresh));
    return number;
  }

  void addDroppedBiases() {
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      std::optional<std::string> name = rules_.droppedBias(model_.graph().node(i));
      if (!name || byName_.contains(*name))
        continue;
      const NodeProto &node = model_.graph().node(i);
      const TensorProto *weight = model_.initializer(node.input(1));
      if (!weight || model_.source(*weight).dims.size() < 2)
        continue;
      const TensorSource &source = model_.source(*weight);
      Draft draft;
      draft.told = true;
      draft.root = -1;
      ModelParameter &p = draft.parameter;
      p.name = *name;
      p.dtype = source.dtype;
      p.dims = {source.dims[rules_.outputDim(node)]};
      p.source.state = TensorSource::State::Zeros;
      p.source.dtype = p.dtype;
      p.source.dims = p.dims;
      byName_.try_emplace(*name, int(drafts_.size()));
      biases_.push_back({i, 2, int(drafts_.size())});
      drafts_.push_back(std::move(draft));
    }
  }

  /// Ties matrices whose names are not told by the file (folded transposes, mostly) to the ones
  /// that they equal. Two told names stay apart however equal: an exporter that knows a tie writes
  /// one initializer.
  void tieByValue() {
    bool guessed = llvm::any_of(drafts_, [](const Draft &d) { return !d.told; });
    if (!guessed || options_.untie == ParameterOptions::Untie::Never)
      return;
    std::map<std::string, std::vector<int>> groups;
    for (int i = 0; i < int(drafts_.size()); ++i) {
      const TensorSource &source = drafts_[i].parameter.source;
      if (source.dims.size() == 2 && source.data && !isConstant(source))
        groups[matrixKey(source)].push_back(i);
    }
    for (auto &[key, members] : groups)
      for (size_t n = 1; n < members.size(); ++n)
        for (size_t m = 0; m < n; ++m) {
          Draft &a = drafts_[members[m]], &b = drafts_[members[n]];
          if (a.mergedInto >= 0 || b.mergedInto >= 0 || (a.told && b.told))
            continue;
          // As PyTorch has them, or, where the orientation is a guess, either way.
          bool crossed = a.parameter.transposed != b.parameter.transposed;
          if (sameValues(a.parameter.source, b.parameter.source, crossed))
            merge(members[m], members[n], /*flipped=*/false);
          else if (sameValues(a.parameter.source, b.parameter.source, !crossed))
            merge(members[m], members[n], /*flipped=*/true);
        }
  }

  /// One of two equal parameters takes the other in: the one whose name is told, else the first.
  void merge(int a, int b, bool flipped) {
    if (!drafts_[a].told && drafts_[b].told)
      std::swap(a, b);
    drafts_[b].mergedInto = a;
    drafts_[b].flipped = flipped;
    if (!rules_.isRepeatedCall(drafts_[b].parameter.name, drafts_[a].parameter.name))
      drafts_[a].parameter.otherNames.push_back(drafts_[b].parameter.name);
  }

  llvm::Error tieByOption() {
    std::string prefix = wrapperPrefix();
    auto find = [&](llvm::StringRef name) -> llvm::Expected<int> {
      for (const std::string &full : {name.str(), prefix + name.str()})
        if (auto known = byName_.find(full); known != byName_.end()) {
          int draft = known->second;
          while (drafts_[draft].mergedInto >= 0)
            draft = drafts_[draft].mergedInto;
          return draft;
        }
      return userError("--tie: no parameter is called " + quoted(name),
                       "shardc prints the names of all parameters with -v");
    };
    for (const auto &[first, second] : options_.ties) {
      auto a = find(first), b = find(second);
      if (!a || !b)
        return llvm::joinErrors(a ? llvm::Error::success() : a.takeError(),
                                b ? llvm::Error::success() : b.takeError());
      const ModelParameter &pa = drafts_[*a].parameter, &pb = drafts_[*b].parameter;
      if (pa.dims != pb.dims || pa.dtype != pb.dtype)
        return userError("--tie: shapes differ: got " + quoted(first) + " " + formatDims(pa.dims) +
                         " and " + quoted(second) + " " + formatDims(pb.dims));
      if (*a == *b)
        continue;
      drafts_[*b].mergedInto = *a;
      auto &names = drafts_[*a].parameter.otherNames;
      names.push_back(pb.name);
      names.insert(names.end(), pb.otherNames.begin(), pb.otherNames.end());
    }
    return llvm::Error::success();
  }

  /// "m." where an exporter's wrapper holds the model as `self.m`: the first component of all names
  /// that are paths.
  std::string wrapperPrefix() const {
    std::vector<llvm::StringRef> names;
    for (const Draft &draft : drafts_)
      if (isTorchName(draft.parameter.name))
        names.push_back(draft.parameter.name);
    for (const std::string &name : rules_.signature().parameters())
      names.push_back(name);
    if (names.empty())
      return "";
    std::string prefix = names.front().split('.').first.str() + ".";
    bool anyPath = false;
    for (llvm::StringRef name : names) {
      if (!name.consume_front(prefix) || name.empty() || llvm::isDigit(name.front()))
        return ""; // `layers.0.weight` of a Sequential has no wrapper
      anyPath |= name.contains('.');
    }
    return anyPath ? prefix : "";
  }

  ParameterTable finish() {
    ParameterTable table;
    table.notes = std::move(notes_);
    std::vector<int> numbers(drafts_.size(), -1);
    std::string prefix = table.wrapper = wrapperPrefix();
    auto strip = [&](std::string &name) {
      if (llvm::StringRef(name).starts_with(prefix))
        name.erase(0, prefix.size());
    };
    auto number = [&](int draft, bool &transposed) {
      while (drafts_[draft].mergedInto >= 0) {
        transposed ^= drafts_[draft].flipped;
        draft = drafts_[draft].mergedInto;
      }
      if (numbers[draft] < 0) {
        numbers[draft] = table.parameters.size();
        ModelParameter &p = table.parameters.emplace_back(std::move(drafts_[draft].parameter));
        strip(p.name);
        llvm::for_each(p.otherNames, strip);
      }
      return numbers[draft];
    };
    // By first use; a dropped bias counts where it would be used.
    size_t nextBias = 0;
    auto biasesBefore = [&](int node) {
      for (; nextBias < biases_.size() && biases_[nextBias].node < node; ++nextBias) {
        DroppedBias bias = biases_[nextBias];
        bool unused = false;
        bias.parameter = number(bias.parameter, unused);
        table.biases.push_back(bias);
      }
    };
    for (const Place &place : places_) {
      if (place.node >= 0)
        biasesBefore(place.node);
      bool transposed = place.transposed;
      int parameter = number(place.draft, transposed);
      if (place.node >= 0)
        table.uses.push_back({place.node, place.input, parameter, transposed});
      else
        table.captures.push_back({place.value, parameter, transposed});
    }
    biasesBefore(model_.graph().node_size());
    return table;
  }

  const OnnxModel &model_;
  const ParameterOptions &options_;
  NameRules rules_;
  std::vector<const TensorProto *> tensors_; ///< float initializers: roots
  llvm::StringMap<int> roots_; ///< name of an initializer, or of an Identity of one -> root
  std::vector<ParameterRead> reads_;
  std::vector<Draft> drafts_;
  llvm::StringMap<int> byName_;
  /// (root, name) -> draft, and whether that root is the transpose of it
  std::map<std::pair<int, std::string>, std::pair<int, bool>> seen_;
  std::vector<Place> places_;
  std::vector<DroppedBias> biases_; ///< `parameter` is a draft
  std::vector<std::string> notes_;
};

} // namespace

llvm::Expected<ParameterTable> findParameters(const OnnxModel &model,
                                              const ParameterOptions &options) {
  return Finder(model, options).run();
}

} // namespace shardc
