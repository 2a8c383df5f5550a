// SPDX-License-Identifier: Apache-2.0
#include "frontend/Importer.h"
#include "frontend/BatchMajor.h"
#include "frontend/BindDims.h"
#include "frontend/Finish.h"
#include "frontend/ImportReport.h"
#include "frontend/Loss.h"
#include "frontend/MaskedLoss.h"
#include "frontend/NeededNodes.h"
#include "frontend/NormaliseGraph.h"
#include "frontend/Quoted.h"
#include "frontend/TensorValue.h"
#include "frontend/WidenHalves.h"
#include "ir/base/Error.h"
#include "ir/base/Hint.h"

namespace shardc {
namespace {

class Importer final : public ImportServices {
public:
  Importer(const OnnxModel &model, const ImportOptions &options)
      : ImportServices(model, notes_), model_(model), options_(options),
        graph_(std::make_unique<Graph>()), b_(*graph_) {}
  llvm::Expected<std::unique_ptr<Graph>> run();
  std::vector<std::string> takeNotes() { return std::move(notes_.notes); }

private:
  using Scope = llvm::StringMap<Value *>;

  llvm::Error readParameters();
  llvm::Error makeInputs();
  llvm::Error importNodes();
  llvm::Error setOutputs();
  llvm::Error finish();

  void importNode(const onnx::NodeProto &node, int index);
  void bindOutputs(NodeContext &n);
  /// Null after a mistake, or where an unsupported node is the source (then `poisoned` is set).
  Value *resolve(llvm::StringRef name, bool &poisoned);
  Value *parameter(int index, bool transposed);
  llvm::SmallVector<Value *> inlineBranch(const onnx::GraphProto &branch) override;
  bool isRead(llvm::StringRef name) const override { return needed_.names.contains(name); }

  const OnnxModel &model_;
  const ImportOptions &options_;
  ImportNotes notes_;
  std::unique_ptr<Graph> graph_;
  Emitter b_;
  LossChoice loss_;
  llvm::DenseMap<int, MaskedLoss> masked_;
  NeededNodes needed_;
  int64_t batch_ = 1;

  ParameterTable parameters_;
  llvm::DenseMap<std::pair<int, int>, std::pair<int, bool>>
      uses_;                                          ///< (node, input) -> (parameter, transposed)
  llvm::DenseMap<int, const DroppedBias *> biases_;   ///< by node
  llvm::StringMap<std::pair<int, bool>> byName_;      ///< the same by the name that is read
  llvm::DenseMap<std::pair<int, int>, Value *> made_; ///< (parameter, transposed)

  std::vector<Scope> scopes_ = std::vector<Scope>(1);
  llvm::StringMap<std::string> aliases_; ///< outputs of Identity
  Value *labels_ = nullptr;
};

llvm::Error Importer::readParameters() {
  auto table = findParameters(model_, options_.parameters);
  if (!table)
    return table.takeError();
  parameters_ = std::move(*table);
  for (const ParameterUse &use : parameters_.uses) {
    uses_[{use.node, use.input}] = {use.parameter, use.transposed};
    const onnx::NodeProto &node = model_.graph().node(use.node);
    if (use.input < node.input_size())
      byName_.try_emplace(node.input(use.input), use.parameter, use.transposed);
  }
  for (const DroppedBias &bias : parameters_.biases)
    biases_[bias.node] = &bias;
  llvm::append_range(notes_.notes, parameters_.notes);
  return llvm::Error::success();
}

static ValueSource sourceOf(const ModelParameter &p) {
  ValueSource source;
  using State = TensorSource::State;
  source.kind = p.source.state == State::Zeros    ? ValueSource::Zero
                : p.source.state == State::Absent ? ValueSource::Absent
                                                  : ValueSource::File;
  source.file = p.source.file;
  source.offset = p.source.offset;
  source.length = p.source.length;
  source.dtype = p.source.dtype;
  source.transposed = p.transposed;
  return source;
}

Value *Importer::parameter(int index, bool transposed) {
  Value *&value = made_[{index, transposed}];
  if (value)
    return value;
  const ModelParameter &p = parameters_.parameters[index];
  if (transposed) {
    Value *plain = parameter(index, false);
    std::string place = b_.place().str();
    b_.setPlace(p.name);
    Value *turned = b_.transpose(plain, {1, 0});
    b_.setPlace(place);
    return made_[{index, transposed}] = turned;
  }
  if (p.source.state != TensorSource::State::Zeros &&
      p.source.state != TensorSource::State::Absent && p.source.file.empty() &&
      p.source.numElements() > 0) {
    b_.fail("parameter " + quoted(p.name) +
                ": its values are stored in a form that cannot be read in place",
            "save the model with raw_data or external data");
    return nullptr;
  }
  Op *op = graph_->create(kParam, {}, {{"name", p.name}}, {Type(p.dtype, p.dims)}, nullptr,
                          valueName(p.name));
  op->place = p.name;
  value = op->result();
  Parameter parameter;
  parameter.name = p.name;
  parameter.ties.append(p.otherNames.begin(), p.otherNames.end());
  parameter.type = value->type();
  parameter.source = sourceOf(p);
  parameter.value = value;
  graph_->parameters.push_back(std::move(parameter));
  return value;
}

llvm::Error Importer::makeInputs() {
  llvm::StringSet<> needed;
  for (auto &entry : needed_.names)
    if (!options_.constants.contains(entry.first()))
      needed.insert(entry.first());
  bool shift = options_.shiftRight && needed.contains("decoder_input_ids");
  if (options_.shiftRight && !shift)
    return userError(
        "--shift-right: got a model that does not read 'decoder_input_ids', wanted one that does",
        "leave the flag out");
  auto bound = bindDims(model_, options_, needed);
  if (!bound)
    return bound.takeError();
  batch_ = bound->batch;
  for (const BoundInput &input : bound->inputs) {
    bool shifted = shift && input.name == "decoder_input_ids";
    if (shifted && needed.contains(options_.labels))
      return userError("--shift-right: got a model that reads both 'decoder_input_ids' and " +
                           quoted(options_.labels) + ", wanted one that reads the former alone",
                       "leave the flag out");
    Value *value = makeInput(b_, shifted ? options_.labels : input.name, input.type);
    value->setBatchMajor(input.batchMajor);
    if (shifted || input.name == options_.labels)
      labels_ = value;
    scopes_[0][input.name] = shifted ? shiftedLabels(b_, options_, value) : value;
  }
  for (const onnx::ValueInfoProto &input : model_.graph().input())
    if (auto it = options_.constants.find(input.name()); it != options_.constants.end())
      scopes_[0][input.name()] = b_.constant(it->second);
  return b_.takeError();
}

Value *Importer::resolve(llvm::StringRef name, bool &poisoned) {
  for (int steps = 0; steps < 1000; ++steps) {
    for (size_t i = scopes_.size(); i-- > 0;)
      if (auto it = scopes_[i].find(name); it != scopes_[i].end()) {
        poisoned |= !it->second;
        return it->second;
      }
    auto alias = aliases_.find(name);
    if (alias == aliases_.end())
      break;
    name = alias->second;
  }
  if (auto it = byName_.find(name); it != byName_.end())
    return parameter(it->second.first, it->second.second);
  const onnx::TensorProto *initializer = model_.initializer(name);
  if (!initializer) {
    b_.fail("input " + quoted(name) + " is not defined");
    return nullptr;
  }
  auto tensor = tensorValue(model_, *initializer, "initializer " + quoted(name));
  if (!tensor) {
    b_.fail(llvm::toString(tensor.takeError()));
    return nullptr;
  }
  return scopes_[0][name] = b_.constant(std::move(*tensor));
}

void Importer::importNode(const onnx::NodeProto &node, int index) {
  const std::string &type = node.op_type();
  b_.setPlace(node.name().empty() ? describeNode(node) : node.name());
  auto unsupported = [&](const llvm::Twine &reason) {
    notes_.unsupported.push_back({b_.place().str(), type, reason.str()});
    for (const std::string &output : node.output())
      if (!output.empty())
        scopes_.back()[output] = nullptr;
  };
  if (!node.domain().empty() && node.domain() != "ai.onnx")
    return unsupported("domain " + quoted(node.domain()) +
                       " is not ONNX's own: export without the other runtime's optimisations");
  const NodeRule *rule = findNodeRule(type);
  const OpDef *def = rule ? nullptr : findOneToOne(type);
  if (!rule && !def)
    return unsupported("there is no rule for it");
  // Not looked at before someone reads it: it may stand between a parameter and its users.
  if (type == "Identity" && node.input_size() == 1 && node.output_size() == 1 &&
      scopes_.size() == 1) {
    aliases_[node.output(0)] = node.input(0);
    return;
  }

  llvm::SmallVector<Value *> inputs;
  bool poisoned = false;
  auto masked = index < 0 ? masked_.end() : masked_.find(index);
  if (masked != masked_.end()) {
    inputs = {resolve(masked->second.scores, poisoned), resolve(masked->second.labels, poisoned)};
    Value *mask = resolve(masked->second.mask, poisoned);
    if (!poisoned && !b_.failed())
      inputs[1] = maskedLabels(b_, node, inputs[1], mask);
  } else {
    for (int i = 0; i < node.input_size(); ++i) {
      auto use = index < 0 ? uses_.end() : uses_.find({index, i});
      if (use != uses_.end())
        inputs.push_back(parameter(use->second.first, use->second.second));
      else
        inputs.push_back(node.input(i).empty() ? nullptr : resolve(node.input(i), poisoned));
    }
    if (auto bias = index < 0 ? biases_.end() : biases_.find(index); bias != biases_.end()) {
      inputs.resize(std::max<size_t>(inputs.size(), bias->second->input + 1), nullptr);
      inputs[bias->second->input] = parameter(bias->second->parameter, false);
    }
  }
  if (b_.failed())
    return;
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();
  NodeContext n(*this, b_, node, inputs, model_.opset());
  if (!poisoned) {
    unsigned least = rule ? rule->least : 0;
    if (inputs.size() < least || (rule && rule->most != kAnyNumber && inputs.size() > rule->most))
      return b_.fail("number of inputs: got " + llvm::Twine(inputs.size()) + ", wanted " +
                     llvm::Twine(least) + (rule->most == least ? "" : " or more"));
    for (unsigned i = 0; i < least; ++i)
      if (!inputs[i])
        return b_.fail("input " + llvm::Twine(i) + " is absent");
    if (rule)
      rule->import(n);
    else
      importOneToOne(n, *def);
  }
  if (!b_.failed())
    bindOutputs(n);
}

void Importer::bindOutputs(NodeContext &n) {
  bool none = n.isUnsupported() || n.outputs().empty() ||
              llvm::all_of(n.outputs(), [](Value *v) { return !v; });
  for (int i = 0; i < n.proto.output_size(); ++i) {
    const std::string &name = n.proto.output(i);
    if (name.empty())
      continue;
    Value *value = n.outputs()[i];
    // An output that the rule does not make is an error for those who read it only.
    scopes_.back()[name] = value;
    if (!value && !none && needed_.names.contains(name))
      n.unsupported("output " + llvm::Twine(i) + " is not available");
    if (value && value->op()->place == b_.place() && !value->op()->is(kConstant)) {
      std::string made = valueName(name);
      llvm::StringRef shown = made; // without the exporter's wrapper, as parameters are
      shown.consume_front(parameters_.wrapper);
      graph_->rename(value, shown.empty() ? made : shown);
    }
  }
}

llvm::SmallVector<Value *> Importer::inlineBranch(const onnx::GraphProto &branch) {
  std::string place = b_.place().str();
  scopes_.emplace_back();
  llvm::SmallVector<Value *> values;
  for (const onnx::TensorProto &initializer : branch.initializer()) {
    auto tensor = tensorValue(model_, initializer, "initializer " + quoted(initializer.name()));
    if (!tensor)
      b_.fail(llvm::toString(tensor.takeError()));
    else
      scopes_.back()[initializer.name()] = b_.constant(std::move(*tensor));
  }
  for (const onnx::NodeProto &node : branch.node())
    if (!b_.failed())
      importNode(node, -1);
  bool poisoned = false;
  for (const onnx::ValueInfoProto &output : branch.output())
    values.push_back(b_.failed() ? nullptr : resolve(output.name(), poisoned));
  scopes_.pop_back();
  if (!b_.failed())
    b_.setPlace(place);
  return values;
}

llvm::Error Importer::importNodes() {
  const onnx::GraphProto &graph = model_.graph();
  for (int i = 0; i < graph.node_size(); ++i) {
    if (needed_.nodes[i])
      importNode(graph.node(i), i);
    if (auto error = b_.takeError()) {
      // Mistakes of one node; what is unsupported before it matters more.
      if (notes_.unsupported.empty())
        return error;
      llvm::consumeError(std::move(error));
      break;
    }
  }
  return unsupportedError(model_, notes_);
}

llvm::Error Importer::setOutputs() {
  bool poisoned = false;
  for (const onnx::ValueInfoProto &output : model_.graph().output()) {
    if (!needed_.names.contains(output.name()))
      continue;
    b_.setPlace("output " + output.name());
    Value *value = resolve(output.name(), poisoned);
    if (!value || b_.failed())
      return b_.takeError();
    if (loss_.kind == LossChoice::Kind::None)
      graph_->addOutput(output.name(), value);
    else if (output.name() == loss_.output)
      attachLoss(b_, loss_, options_, value, labels_, notes_);
  }
  return b_.takeError();
}

llvm::Error Importer::finish() {
  eraseUnused(*graph_);
  if (loss_.kind != LossChoice::Kind::None && widenHalves(*graph_))
    notes_.notes.push_back("the model is stored in 16 bits: it is trained from f32 parameters, and computes as --precision says");
  markBatchMajor(*graph_, batch_);
  if (auto error = chooseTrainables(*graph_, options_.freeze))
    return error;
  assignLayers(*graph_);
  boundInputs(*graph_);
  Attrs &attrs = graph_->attrs;
  attrs.set("opset", int64_t(model_.opset()));
  attrs.set("ir_version", model_.irVersion());
  attrs.set("producer", model_.producer());
  attrs.set("model_hash", model_.hash().str());
  attrs.set("batch", batch_);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Graph>> Importer::run() {
  auto choice = chooseLoss(model_, options_);
  if (!choice)
    return choice.takeError();
  loss_ = std::move(*choice);
  masked_ = findMaskedLosses(model_.graph());
  needed_ = findNeededNodes(model_.graph(), loss_.output, masked_);
  for (auto step : {&Importer::readParameters, &Importer::makeInputs})
    if (auto error = (this->*step)())
      return error;
  for (auto step : {&Importer::importNodes, &Importer::setOutputs})
    if (auto error = (this->*step)())
      return withHint(std::move(error),
                      "if sizes do not fit: check --dim and --input-shape; else export the model again");
  if (auto error = finish())
    return error;
  noteWhatWasFound(notes_);
  return std::move(graph_);
}

} // namespace

llvm::Expected<std::unique_ptr<Graph>>
importOnnx(const OnnxModel &model, const ImportOptions &options, std::vector<std::string> *notes) {
  Importer importer(model, options);
  auto graph = importer.run();
  if (notes)
    llvm::append_range(*notes, importer.takeNotes());
  return graph;
}

} // namespace shardc
