// SPDX-License-Identifier: Apache-2.0
// How `bind` functions judge a command: chains of checks of which the first that fails is the
// error.
//   Checks c(binding);
//   if (!(c.arity(2, 3, 1) && c.rank(0, 2) && ...)) return c.take();
#pragma once

#include "runtime/host/Kernel.h"

namespace shardc::host {

class Checks {
public:
  explicit Checks(const Binding &binding) : b_(binding) {}

  /// Error "PLACE: KERNEL: what"; `what` is said only if `good` is false.
  bool that(bool good, llvm::StringRef what);
  /// At least `minimum` and at most `maximum` operands, the first `minimum` present; exactly
  /// `results` results, the first `results` - `optionalResults` present.
  bool arity(size_t minimum, size_t maximum, size_t results, size_t optionalResults = 0);
  bool rank(const Array &a, size_t rank);
  bool dims(const Array &a, llvm::ArrayRef<int64_t> wanted);
  bool dtype(const Array &a, DType wanted);
  /// f32 or f64.
  bool real(const Array &a);
  /// i32 or i64.
  bool index(const Array &a);
  bool contiguous(const Array &a);
  /// Every present result is contiguous.
  bool denseResults();
  /// Stride 1 in the last dim, if there is one.
  bool lastDim(const Array &a);
  /// Memory of results and operands is disjoint, save what `inPlace` (pairs result, operand) allows
  /// to be the very same array.
  bool apart(llvm::ArrayRef<std::pair<unsigned, unsigned>> inPlace = {});
  bool workspace(int64_t bytes);

  /// Attributes. With `otherwise` they may be absent.
  bool intAttr(llvm::StringRef name, int64_t &value, std::optional<int64_t> otherwise = {});
  bool floatAttr(llvm::StringRef name, double &value, std::optional<double> otherwise = {});
  bool stringAttr(llvm::StringRef name, std::string &value);
  bool intsAttr(llvm::StringRef name, llvm::SmallVectorImpl<int64_t> &value);
  bool has(llvm::StringRef name) const;
  /// Integer attribute `name` as an axis of `rank` dims; negative ones count from the end.
  bool axisAttr(llvm::StringRef name, size_t rank, int64_t &axis,
                std::optional<int64_t> otherwise = {});

  /// The operand, or an absent one.
  const Array &in(size_t i) const { return i < b_.in.size() ? b_.in[i] : none_; }
  const Array &out(size_t i) const { return i < b_.out.size() ? b_.out[i] : none_; }
  /// The first complaint. Requires: a check failed.
  llvm::Error take();

private:
  const plan::Attr *find(llvm::StringRef name) const;
  bool fail(const llvm::Twine &what);
  std::string nameOf(const Array &a) const;
  const Binding &b_;
  Array none_;
  std::string complaint_;
};

/// Bytes [first, second) that an array touches. Empty if it has no elements.
std::pair<const char *, const char *> extent(const Array &a);
bool overlap(const Array &a, const Array &b);
/// Same memory in the same order, elements of equal width.
bool sameArray(const Array &a, const Array &b);
/// The strides of `a` seen with `dims`, to which it broadcasts as in ONNX; false if it does not.
bool broadcastStrides(const Array &a, llvm::ArrayRef<int64_t> dims, Dims &strides);

} // namespace shardc::host
