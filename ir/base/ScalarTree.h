// SPDX-License-Identifier: Apache-2.0
// Inside of the scalar program parser: expression trees, and their translation to typed code.
#pragma once

#include "ir/base/ScalarExpr.h"
#include "llvm/ADT/Twine.h"
#include <map>
#include <string>
#include <tuple>

namespace shardc::scalar_tree {

/// `type` is empty for what takes the type of what it meets: numbers, `keep`, and sums of such.
struct Node {
  enum Kind : uint8_t { Number, Input, Register, Operation, Convert, Keep } kind;
  ScalarCode code = ScalarCode::Number;
  std::optional<DType> type = std::nullopt;
  int args[3] = {-1, -1, -1};
  double number = 0; ///< Keep: p
  int64_t index = 0; ///< Input, Register; Keep: id
  bool batchMajor = false;
  unsigned depth = 1;
  size_t column = 0;
};

/// Nodes, and the first mistake. Every function returns a node index, -1 after a mistake.
class Tree {
public:
  std::vector<Node> nodes;
  std::string error;
  size_t errorColumn = 0;

  int fail(size_t column, const llvm::Twine &what);
  int number(size_t column, double value);
  int input(size_t column, int64_t index, DType dtype);
  int reg(size_t column, int16_t index, DType dtype);
  int unary(size_t column, ScalarCode code, int operand);
  int binary(size_t column, ScalarCode code, int left, int right);
  int select(size_t column, int condition, int yes, int no);
  int call(size_t column, llvm::StringRef name, llvm::ArrayRef<int> args);

private:
  int add(Node node);
  /// The one type of operands that have one; an error if they differ.
  std::optional<DType> common(size_t column, llvm::ArrayRef<int> args);
};

/// f16 and bf16 compute in f32.
inline DType promoted(DType type) { return wideType(type); }

/// Writes nodes as code, equal instructions once.
class Typer {
public:
  explicit Typer(Tree &tree) : tree_(tree) {}
  ScalarProgram program;

  /// The register of a whole line, converted to its type. 0 after a mistake.
  int16_t emitLine(int node, DType dtype);

private:
  /// In the node's own type, or in `wanted` if it has none.
  int16_t emit(int node, DType wanted);
  int16_t convert(int16_t reg, DType to);
  int16_t add(ScalarInstr instr);

  Tree &tree_;
  using Key = std::tuple<ScalarCode, DType, int16_t, int16_t, int16_t, uint64_t, int64_t, bool>;
  std::map<Key, int16_t> known_;
};

} // namespace shardc::scalar_tree
