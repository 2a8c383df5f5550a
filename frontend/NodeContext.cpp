// SPDX-License-Identifier: Apache-2.0
#include "frontend/NodeContext.h"
#include "ir/graph/Fold.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

const onnx::AttributeProto *NodeContext::find(llvm::StringRef name) const {
  for (const onnx::AttributeProto &attr : proto.attribute())
    if (attr.name() == name)
      return &attr;
  return nullptr;
}

static const onnx::AttributeProto *findOfKind(NodeContext &n, llvm::StringRef name, int kind) {
  const onnx::AttributeProto *attr = n.find(name);
  if (attr && attr->type() != kind) {
    n.b.fail("attribute '" + name + "' has the wrong kind: got " +
             onnx::AttributeProto::AttributeType_Name(attr->type()) + ", wanted " +
             onnx::AttributeProto::AttributeType_Name(onnx::AttributeProto::AttributeType(kind)));
    return nullptr;
  }
  return attr;
}

int64_t NodeContext::intAttr(llvm::StringRef name, int64_t otherwise) {
  auto *attr = findOfKind(*this, name, onnx::AttributeProto::INT);
  return attr ? attr->i() : otherwise;
}

double NodeContext::floatAttr(llvm::StringRef name, double otherwise) {
  auto *attr = findOfKind(*this, name, onnx::AttributeProto::FLOAT);
  return attr ? attr->f() : otherwise;
}

std::string NodeContext::stringAttr(llvm::StringRef name, llvm::StringRef otherwise) {
  auto *attr = findOfKind(*this, name, onnx::AttributeProto::STRING);
  return attr ? attr->s() : otherwise.str();
}

std::optional<Ints> NodeContext::intsAttr(llvm::StringRef name) {
  auto *attr = findOfKind(*this, name, onnx::AttributeProto::INTS);
  if (!attr)
    return std::nullopt;
  return Ints(attr->ints().begin(), attr->ints().end());
}

const Tensor *NodeContext::constantIn(unsigned i, llvm::StringRef what) {
  Value *value = in(i);
  if (!value)
    return nullptr;
  if (const Tensor *tensor = constantOf(value))
    return tensor;
  // A constant that is too large to be folded is still one value everywhere.
  if (value->op()->is(kExpand))
    if (constantOf(value->op()->operand(0)))
      return unsupported(what + " is too large a constant"), nullptr;
  unsupported(what + " depends on data");
  return nullptr;
}

std::optional<Ints> NodeContext::intsIn(unsigned i, llvm::StringRef what) {
  const Tensor *tensor = constantIn(i, what);
  if (!tensor)
    return std::nullopt;
  if (isFloat(tensor->dtype()) || tensor->rank() > 1) {
    b.fail(what + ": got " + shardc::toString(type(i)) + ", wanted a list of integers");
    return std::nullopt;
  }
  return Ints(tensor->ints());
}

std::optional<double> NodeContext::scalarIn(unsigned i, llvm::StringRef what) {
  const Tensor *tensor = constantIn(i, what);
  if (!tensor)
    return std::nullopt;
  if (tensor->numElements() != 1) {
    b.fail(what + ": got " + shardc::toString(type(i)) + ", wanted one number");
    return std::nullopt;
  }
  return tensor->asDouble(0);
}

std::optional<Ints> NodeContext::axes(unsigned i) {
  if (auto list = intsAttr("axes"))
    return list;
  return intsIn(i, "axes");
}

int64_t NodeContext::axis(int64_t value, int64_t rank) {
  if (value >= -rank && value < rank)
    return value < 0 ? value + rank : value;
  b.fail("axis: got " + llvm::Twine(value) + ", wanted one of " + llvm::Twine(rank) + " dims");
  return 0;
}

Ints NodeContext::axisList(Ints values, int64_t rank) {
  for (int64_t &v : values)
    v = axis(v, rank);
  llvm::sort(values);
  if (std::adjacent_find(values.begin(), values.end()) != values.end())
    b.fail("axes: got a repetition, wanted each axis once");
  return values;
}

void NodeContext::unsupported(const llvm::Twine &reason) {
  if (unsupported_)
    return;
  unsupported_ = true;
  services.notes.unsupported.push_back({b.place().str(), proto.op_type(), reason.str()});
}

const NodeRule *findNodeRule(llvm::StringRef node) {
  static const llvm::StringMap<const NodeRule *> kByName = [] {
    llvm::StringMap<const NodeRule *> map;
    for (auto family : {kShapeRules, kMovementRules, kMathRules, kReductionRules, kProductRules,
                        kEinsumRules, kAttentionRules, kLossRules, kControlRules})
      for (const NodeRule &rule : family)
        map[rule.node] = &rule;
    return map;
  }();
  return kByName.lookup(node);
}

const OpDef *findOneToOne(llvm::StringRef node) {
  static const llvm::StringMap<const OpDef *> kByName = [] {
    llvm::StringMap<const OpDef *> map;
    for (const OpDef *def : allOps())
      if (def->onnx.node)
        map[def->onnx.node] = def;
    return map;
  }();
  return kByName.lookup(node);
}

void importOneToOne(NodeContext &n, const OpDef &def) {
  Attrs attrs;
  for (const OnnxRule::AttrRule &rule : def.onnx.attrs) {
    const onnx::AttributeProto *given = n.find(rule.onnx);
    bool isInt = given ? given->type() == onnx::AttributeProto::INT
                       : rule.otherwise == int64_t(rule.otherwise);
    if (isInt)
      attrs.set(rule.ours, n.intAttr(rule.onnx, int64_t(rule.otherwise)));
    else
      attrs.set(rule.ours, n.floatAttr(rule.onnx, rule.otherwise));
  }
  n.set(0, n.b.emit(def, n.inputs(), std::move(attrs)));
}

std::string valueName(llvm::StringRef onnxName) {
  std::string name;
  for (char c : onnxName)
    if (llvm::isAlnum(c) || c == '_')
      name += c;
    else if (!name.empty() && name.back() != '.') // "/m/encoder/MatMul", "onnx::MatMul_3"
      name += c == '.' || c == '/' || c == ':' ? '.' : '_';
  return name.empty() ? "v" : name;
}

} // namespace shardc
