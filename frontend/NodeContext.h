// SPDX-License-Identifier: Apache-2.0
// One ONNX node as its rule sees it, and the table of rules.
#pragma once

#include "frontend/Emitter.h"
#include "onnx/onnx-ml.pb.h"
#include <string>
#include <vector>

namespace shardc {

class OnnxModel;
class NodeContext;

/// What rules of different nodes tell each other and the end of the import.
struct ImportNotes {
  /// A scalar that is a mean: value = factor * sum / count.
  struct Mean {
    Value *sum = nullptr, *count = nullptr, *correct = nullptr;
  };
  llvm::DenseMap<Value *, Mean> means;
  std::vector<std::string> notes;
  struct Unsupported {
    std::string place, node, reason;
  };
  std::vector<Unsupported> unsupported;
  int64_t nextDropoutId = 0;
  unsigned activeDropouts = 0, foldedIfs = 0;
  std::vector<std::string> idleDropouts; ///< nodes that do nothing though the ratio is not zero
  std::vector<std::string> lostDropouts; ///< attentions whose dropout the file does not have
};

/// What a rule needs of the importer.
struct ImportServices {
  const OnnxModel &model;
  ImportNotes &notes;
  /// Imports the nodes of a branch at this point; gives the values of its outputs (null: an
  /// unsupported node).
  virtual llvm::SmallVector<Value *> inlineBranch(const onnx::GraphProto &branch) = 0;
  /// Does a node or the end of the import need the value of that name?
  virtual bool isRead(llvm::StringRef name) const = 0;

protected:
  ImportServices(const OnnxModel &model, ImportNotes &notes) : model(model), notes(notes) {}
  ~ImportServices() = default;
};

/// Operands are there as values; absent optional ones are null. A rule sets every output that
/// `wants` is true for. Mistakes go to `b.fail`; a node that is right but beyond us to
/// `unsupported`. A rule may go on after either, but must not read the type of what it emitted
/// before it has asked `failed()`.
class NodeContext {
public:
  NodeContext(ImportServices &services, Emitter &emitter, const onnx::NodeProto &proto,
              llvm::ArrayRef<Value *> inputs, int opset)
      : b(emitter), services(services), proto(proto), opset(opset), inputs_(inputs),
        outputs_(proto.output_size()) {}

  Emitter &b;
  ImportServices &services;
  const onnx::NodeProto &proto;
  const int opset;

  unsigned numInputs() const { return inputs_.size(); }
  Value *in(unsigned i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  llvm::ArrayRef<Value *> inputs() const { return inputs_; }
  const Type &type(unsigned i) const { return in(i)->type(); }
  /// Does anyone read that output?
  bool wants(unsigned output) const {
    return int(output) < proto.output_size() && !proto.output(output).empty() &&
           services.isRead(proto.output(output));
  }
  void set(unsigned output, Value *value) {
    if (output < outputs_.size())
      outputs_[output] = value;
  }
  llvm::ArrayRef<Value *> outputs() const { return outputs_; }

  /// Attributes; the wrong kind is a mistake.
  const onnx::AttributeProto *find(llvm::StringRef name) const;
  int64_t intAttr(llvm::StringRef name, int64_t otherwise);
  double floatAttr(llvm::StringRef name, double otherwise);
  std::string stringAttr(llvm::StringRef name, llvm::StringRef otherwise);
  std::optional<Ints> intsAttr(llvm::StringRef name);

  /// The constant in input i, null if it is absent; what depends on data is unsupported.
  const Tensor *constantIn(unsigned i, llvm::StringRef what);
  std::optional<Ints> intsIn(unsigned i, llvm::StringRef what);
  std::optional<double> scalarIn(unsigned i, llvm::StringRef what);
  /// axes as input i or, in older forms, as an attribute.
  std::optional<Ints> axes(unsigned i);

  /// value in [-rank, rank), made non-negative; a mistake otherwise (then 0).
  int64_t axis(int64_t value, int64_t rank);
  /// The same for a list, sorted; a repetition is a mistake.
  Ints axisList(Ints values, int64_t rank);

  void unsupported(const llvm::Twine &reason);
  bool isUnsupported() const { return unsupported_; }
  bool failed() const { return unsupported_ || b.failed(); }

private:
  llvm::ArrayRef<Value *> inputs_;
  llvm::SmallVector<Value *, 4> outputs_;
  bool unsupported_ = false;
};

/// How one type of ONNX node becomes ops.
struct NodeRule {
  const char *node;
  unsigned least, most; ///< inputs; the first `least` are present
  void (*import)(NodeContext &);
};
constexpr unsigned kAnyNumber = ~0u;

/// By family, each in its own file.
extern const llvm::ArrayRef<NodeRule> kShapeRules, kMovementRules, kMathRules, kReductionRules,
    kProductRules, kEinsumRules, kAttentionRules, kLossRules, kControlRules;

/// The rule for nodes of that type, or null. Prefers a rule over the one-to-one data of an op.
const NodeRule *findNodeRule(llvm::StringRef node);
/// The op that such a node maps to one to one, or null.
const OpDef *findOneToOne(llvm::StringRef node);
/// Imports a node by the data of `def`.
void importOneToOne(NodeContext &n, const OpDef &def);

/// An ONNX name as the name of one of our values: letters, digits, '.' and '_'.
std::string valueName(llvm::StringRef onnxName);

} // namespace shardc
