// SPDX-License-Identifier: Apache-2.0
// The compiler's IR: SSA values with static types, ops in one list in execution order.
#pragma once

#include "ir/graph/Attr.h"
#include "ir/graph/Type.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/ilist.h"
#include "llvm/ADT/ilist_node.h"
#include <string>

namespace shardc {

class Graph;
class Op;
struct OpDef;

/// One operand slot: `op->operand(index)` is the value used.
struct Use {
  Op *op;
  unsigned index;
};

/// The index-th result of `op`. Owned by its op. The name is unique in the graph.
class Value {
public:
  Op *op() const { return op_; }
  unsigned index() const { return index_; }
  const Type &type() const { return type_; }
  void setType(Type type) { type_ = std::move(type); }
  llvm::StringRef name() const { return name_; } ///< without '%'; change by Graph::rename
  llvm::ArrayRef<Use> uses() const { return uses_; }
  bool hasUses() const { return !uses_.empty(); }
  bool hasOneUse() const { return uses_.size() == 1; }
  /// Does dim 0 run over the batch? Recorded at import (design: "which values are batch-major").
  bool batchMajor() const { return batchMajor_; }
  void setBatchMajor(bool yes) { batchMajor_ = yes; }

private:
  friend class Graph;
  friend class Op;
  Op *op_ = nullptr;
  unsigned index_ = 0;
  bool batchMajor_ = false;
  Type type_;
  std::string name_;
  llvm::SmallVector<Use, 2> uses_;
};

enum class Phase : uint8_t { Forward, Backward, Update };

/// One operation. Owned by its graph. Absent optional operands are null.
class Op : public llvm::ilist_node<Op> {
public:
  ~Op();
  const OpDef &def() const { return *def_; }
  bool is(const OpDef &def) const { return def_ == &def; }
  llvm::StringRef mnemonic() const;
  Graph &graph() const { return *graph_; }

  unsigned numOperands() const { return operands_.size(); }
  Value *operand(unsigned i) const { return i < operands_.size() ? operands_[i] : nullptr; }
  llvm::ArrayRef<Value *> operands() const { return operands_; }
  void setOperand(unsigned i, Value *value);
  void addOperand(Value *value);
  /// Drops operands [n, end).
  void truncateOperands(unsigned n);

  unsigned numResults() const { return results_.size(); }
  Value *result(unsigned i = 0) const { return results_[i].get(); }
  bool hasUses() const;

  Attrs attrs;
  /// Where it comes from, for messages and inspection: the ONNX node's name, or that of the op it was made for.
  std::string place;
  /// Parameter bucket or layer it belongs to, "" if none: a scope such as "encoder.block.0".
  std::string layer;
  Phase phase = Phase::Forward;

private:
  friend class Graph;
  Graph *graph_ = nullptr;
  const OpDef *def_ = nullptr;
  llvm::SmallVector<Value *, 4> operands_;
  llvm::SmallVector<std::unique_ptr<Value>, 1> results_;
};

enum class Level : uint8_t { Imported, Step, Sharded, Scheduled };
llvm::StringRef toString(Level level);

/// Where a parameter's starting values lie. All absent means: must be given when training starts.
struct ValueSource {
  enum Kind : uint8_t { Absent, File, Zero } kind = Absent;
  std::string file;                ///< as given on the command line or relative to the model
  uint64_t offset = 0, length = 0; ///< bytes
  DType dtype = DType::F32;
  bool transposed = false; ///< the file holds the 2-D transpose of the parameter
};

/// A parameter of the model, in PyTorch's orientation. `value` is its `param` op's result.
struct Parameter {
  std::string name;
  llvm::SmallVector<std::string, 1> ties; ///< other names of the same parameter
  Type type;
  ValueSource source;
  bool trainable = true;
  std::string layer;   ///< name of its bucket
  int64_t bucket = -1; ///< from level sharded on
  Value *value = nullptr;
};

/// Owns ops (and through them values) and the list of parameters. Not copyable; `clone` copies.
class Graph {
public:
  Graph() = default;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  std::string name = "main";
  Level level = Level::Imported;
  /// Facts of the whole graph that passes and the plan need ("batch", "ranks", "accumulate", "optimizer" ...).
  Attrs attrs;
  std::vector<Parameter> parameters;

  llvm::ilist<Op> &ops() { return ops_; }
  const llvm::ilist<Op> &ops() const { return ops_; }
  size_t numOps() const { return ops_.size(); }

  /// Makes an op before `before` (null: at the end). Results get `types` and fresh names derived from
  /// `name` (or the mnemonic). Does not infer: see Builder.
  Op *create(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs, llvm::ArrayRef<Type> types,
             Op *before = nullptr, llvm::StringRef name = "");
  /// Gives a just made op its results. Requires: it has none.
  void setResults(Op *op, llvm::ArrayRef<Type> types, llvm::StringRef name = "");
  /// Requires: no result is used.
  void erase(Op *op);
  void moveBefore(Op *op, Op *before); ///< null: to the end
  void replaceAllUses(Value *from, Value *to);
  /// Gives `value` that name, made unique by a numeric suffix.
  void rename(Value *value, llvm::StringRef name);
  Value *findValue(llvm::StringRef name) const; ///< by name, null if there is none

  /// Results that leave the graph, with names ("loss_sum", "loss_count", "correct", "logits", "grad:NAME" ...).
  /// They count as uses of a hidden op: values in here are never dead.
  llvm::ArrayRef<std::pair<std::string, Value *>> outputs() const { return outputs_; }
  void addOutput(llvm::StringRef name, Value *value) { outputs_.emplace_back(name.str(), value); }
  Value *output(llvm::StringRef name) const;
  void setOutput(llvm::StringRef name, Value *value); ///< replaces or adds
  void eraseOutput(llvm::StringRef name);
  bool isOutput(const Value *value) const;

  std::unique_ptr<Graph> clone() const;
  /// Name, level, attributes and parameters (without values) alone.
  std::unique_ptr<Graph> withoutOps() const;

private:
  friend class Op;
  llvm::ilist<Op> ops_;
  std::vector<std::pair<std::string, Value *>> outputs_;
  llvm::DenseMap<llvm::StringRef, Value *> names_;       ///< keys point into Value::name_
  llvm::DenseMap<llvm::StringRef, unsigned> nextSuffix_; ///< keys owned by suffixKeys_
  std::vector<std::unique_ptr<std::string>> suffixKeys_;
};

} // namespace shardc
