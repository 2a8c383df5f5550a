// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Graph.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

llvm::StringRef toString(Level level) {
  constexpr llvm::StringLiteral kNames[] = {"imported", "step", "sharded", "scheduled"};
  return kNames[unsigned(level)];
}

Op::~Op() = default;

llvm::StringRef Op::mnemonic() const { return def_->mnemonic; }

void Op::setOperand(unsigned i, Value *value) {
  Value *&slot = operands_[i];
  if (slot == value)
    return;
  if (slot)
    llvm::erase_if(slot->uses_, [&](const Use &use) { return use.op == this && use.index == i; });
  slot = value;
  if (value)
    value->uses_.push_back({this, i});
}

void Op::addOperand(Value *value) {
  operands_.push_back(nullptr);
  setOperand(operands_.size() - 1, value);
}

void Op::truncateOperands(unsigned n) {
  while (operands_.size() > n) {
    setOperand(operands_.size() - 1, nullptr);
    operands_.pop_back();
  }
}

bool Op::hasUses() const {
  return llvm::any_of(results_, [&](auto &r) { return r->hasUses() || graph_->isOutput(r.get()); });
}

Graph::~Graph() {
  for (Op &op : ops_)
    for (unsigned i = 0; i < op.numOperands(); ++i)
      op.operands_[i] = nullptr;
}

Op *Graph::create(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs, llvm::ArrayRef<Type> types,
                  Op *before, llvm::StringRef name) {
  Op *op = new Op;
  op->graph_ = this;
  op->def_ = &def;
  op->attrs = std::move(attrs);
  ops_.insert(before ? before->getIterator() : ops_.end(), op);
  for (Value *operand : operands)
    op->addOperand(operand);
  setResults(op, types, name);
  return op;
}

void Graph::setResults(Op *op, llvm::ArrayRef<Type> types, llvm::StringRef name) {
  assert(op->results_.empty());
  for (unsigned i = 0; i < types.size(); ++i) {
    auto value = std::make_unique<Value>();
    value->op_ = op;
    value->index_ = i;
    value->type_ = types[i];
    op->results_.push_back(std::move(value));
    std::string wanted = name.empty() ? op->mnemonic().str() : name.str();
    if (i > 0)
      wanted += "." + (i < op->def().results.size() ? std::string(op->def().results[i]) : llvm::utostr(i));
    rename(op->result(i), wanted);
  }
}

void Graph::erase(Op *op) {
  assert(llvm::none_of(op->results_, [](auto &r) { return r->hasUses(); }) && "erased op is used");
  op->truncateOperands(0);
  for (auto &result : op->results_)
    names_.erase(result->name());
  ops_.erase(op);
}

void Graph::moveBefore(Op *op, Op *before) {
  ops_.splice(before ? before->getIterator() : ops_.end(), ops_, op->getIterator());
}

void Graph::replaceAllUses(Value *from, Value *to) {
  assert(from != to);
  for (const Use &use : llvm::SmallVector<Use, 2>(from->uses_))
    use.op->setOperand(use.index, to);
  for (auto &[name, value] : outputs_)
    if (value == from)
      value = to;
}

void Graph::rename(Value *value, llvm::StringRef wanted) {
  // The text form's identifiers; anything else becomes '_'.
  std::string base = wanted.str();
  for (char &c : base)
    if (!llvm::isAlnum(c) && c != '.' && c != '_')
      c = '_';
  if (!value->name_.empty())
    names_.erase(value->name_);
  std::string unique = base;
  if (names_.count(unique)) {
    auto found = nextSuffix_.find(base);
    if (found == nextSuffix_.end()) {
      suffixKeys_.push_back(std::make_unique<std::string>(base));
      found = nextSuffix_.try_emplace(*suffixKeys_.back(), 1).first;
    }
    do
      unique = base + "_" + llvm::utostr(found->second++);
    while (names_.count(unique));
  }
  value->name_ = unique;
  names_[value->name_] = value;
}

Value *Graph::findValue(llvm::StringRef name) const { return names_.lookup(name); }

Value *Graph::output(llvm::StringRef name) const {
  for (auto &[key, value] : outputs_)
    if (key == name)
      return value;
  return nullptr;
}

void Graph::setOutput(llvm::StringRef name, Value *value) {
  for (auto &[key, old] : outputs_)
    if (key == name) {
      old = value;
      return;
    }
  addOutput(name, value);
}

void Graph::eraseOutput(llvm::StringRef name) {
  std::erase_if(outputs_, [&](auto &entry) { return entry.first == name; });
}

bool Graph::isOutput(const Value *value) const {
  return llvm::any_of(outputs_, [&](auto &entry) { return entry.second == value; });
}

std::unique_ptr<Graph> Graph::withoutOps() const {
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  copy->level = level;
  copy->attrs = attrs;
  copy->parameters = parameters;
  for (Parameter &parameter : copy->parameters)
    parameter.value = nullptr;
  return copy;
}

std::unique_ptr<Graph> Graph::clone() const {
  std::unique_ptr<Graph> copy = withoutOps();
  llvm::DenseMap<const Value *, Value *> to;
  for (const Op &op : ops_) {
    llvm::SmallVector<Value *, 4> operands;
    for (Value *v : op.operands())
      operands.push_back(v ? to.lookup(v) : nullptr);
    Types types;
    for (auto &r : op.results_)
      types.push_back(r->type());
    Op *made = copy->create(op.def(), operands, op.attrs, types);
    made->place = op.place;
    made->layer = op.layer;
    made->phase = op.phase;
    for (unsigned i = 0; i < op.numResults(); ++i) {
      copy->rename(made->result(i), op.result(i)->name());
      made->result(i)->setBatchMajor(op.result(i)->batchMajor());
      to[op.result(i)] = made->result(i);
    }
  }
  for (auto [made, parameter] : llvm::zip(copy->parameters, parameters))
    made.value = to.lookup(parameter.value);
  for (auto &[key, value] : outputs_)
    copy->addOutput(key, to.lookup(value));
  return copy;
}

} // namespace shardc
