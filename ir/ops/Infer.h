// SPDX-License-Identifier: Apache-2.0
// Checks that `infer` functions share: operands and attributes of one op, first mistake kept.
#pragma once

#include "ir/ops/OpDef.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace shardc {

/// Collects the first mistake. After one, attributes read as harmless defaults, but a rule must ask
/// `failed()` before it indexes dims with them. Ends with `done` or `error`.
class OpCheck {
public:
  explicit OpCheck(const Op &op) : op_(op) {}

  bool has(unsigned i) const { return op_.operand(i); }
  /// Requires: present (the builder has checked the operand count).
  const Type &in(unsigned i) const { return op_.operand(i)->type(); }

  int64_t integer(llvm::StringRef attr);
  int64_t integer(llvm::StringRef attr, int64_t otherwise);
  int64_t count(llvm::StringRef attr); ///< an integer from 0 on
  bool flag(llvm::StringRef attr); ///< 0 if absent
  double number(llvm::StringRef attr);
  double number(llvm::StringRef attr, double otherwise);
  llvm::StringRef text(llvm::StringRef attr);
  bool hasAttr(llvm::StringRef attr) const { return op_.attrs.has(attr); }
  Ints ints(llvm::StringRef attr);
  Ints ints(llvm::StringRef attr, int64_t count); ///< exactly so many
  /// In [0, rank); a negative one counts from the end.
  int64_t axis(llvm::StringRef attr, int64_t rank);
  /// Ascending, distinct, in [0, rank).
  Ints axes(llvm::StringRef attr, int64_t rank);

  void isFloat(unsigned i);
  void isFloatOrInt(unsigned i); ///< not bool
  void isIndex(unsigned i);      ///< i32 or i64
  void isType(unsigned i, DType dtype);
  void isStatisticOf(unsigned i, unsigned j); ///< of wideType(type of j)
  void hasDims(unsigned i, llvm::ArrayRef<int64_t> dims);
  void hasRank(unsigned i, int64_t rank);
  void sameDType(unsigned i, unsigned j);
  /// `message` should say got and wanted.
  void fail(const llvm::Twine &message);

  bool failed() const { return !message_.empty(); }
  llvm::Error error() const;
  llvm::Expected<Types> done(Types types) const;

private:
  const Attr *find(llvm::StringRef attr, llvm::StringRef wanted);
  std::string nameOf(unsigned i) const;
  const Op &op_;
  std::string message_;
};

/// Numpy's rule; nullopt if a pair of dims differs and neither is 1.
std::optional<Dims> broadcastDims(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// Result of one type for a pointwise op: operands have one dtype, which the result shares.
llvm::Expected<Types> inferPointwise(const Op &op);
/// The same for results of type Bool.
llvm::Expected<Types> inferComparison(const Op &op);
/// The type of operand 0.
llvm::Expected<Types> inferSame(const Op &op);
/// Like inferSame, operand 0 must be float.
llvm::Expected<Types> inferSameFloat(const Op &op);

/// The result type of an op that may add to operand `acc` in place and may leave 16-bit floats' sums unrounded: with attribute wide = 1
/// f32, else the type of operand `like`. Operand `acc`, where present, has it too.
DType checkSumType(OpCheck &check, unsigned like, unsigned acc, llvm::ArrayRef<int64_t> dims);

/// Operand 1 are indices of operand 0 along attribute `axis`: of its rank, with dims beside the axis that are not larger.
void checkElementIndices(OpCheck &check);

/// The attribute `reduction` of a scatter: none, add, mul, max or min.
void checkReduction(OpCheck &check);

inline constexpr const char *kIsGradient = "gradients of gradients are not built";

/// `axis` in [0, rank). Requires: valid, as after `infer`.
inline int64_t normalAxis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
/// A number attribute that may be an integer (text may say 1 for 1.0).
double numberOf(const Op &op, llvm::StringRef attr);
double numberOf(const Op &op, llvm::StringRef attr, double otherwise);
Ints normalAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);
/// dims without `axes` (normal), or with 1 in their place.
Dims reducedDims(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> axes, bool keep);

/// The value that all elements of a constant share.
std::optional<double> splatOf(const Value *value);

/// Names of operands and results that many ops share.
inline constexpr const char *kNamesX[] = {"x"};
inline constexpr const char *kNamesA[] = {"a"};
inline constexpr const char *kNamesAB[] = {"a", "b"};
inline constexpr InPlace kInPlace0[] = {{0, 0}};
inline constexpr InPlace kInPlace01[] = {{0, 0}, {1, 0}};

} // namespace shardc
