// SPDX-License-Identifier: Apache-2.0
// Small matchers for the pieces that exporters break composite ops into.
#pragma once

#include "ir/graph/Builder.h"
#include <optional>

namespace shardc::match {

/// The number that every element of a constant has; looks through views. nullopt for anything else.
std::optional<double> number(const Value *value);
/// Equal to 1 part in a million: exporters write sqrt(2) in float.
bool isNumber(const Value *value, double wanted);

/// `value` is `def(a, b)`.
bool binary(const Value *value, const OpDef &def, Value *&a, Value *&b);
bool unary(const Value *value, const OpDef &def, Value *&a);
/// The same with a and b in either order, b a number.
bool withNumber(const Value *value, const OpDef &def, Value *&a, double &b);
/// x^2, as pow(x, 2) or x * x.
bool square(const Value *value, Value *&x);
/// 1/s, as reciprocal, 1 / s or s^-1.
bool reciprocal(const Value *value, Value *&s);
/// Mean over the last dim, kept: sum * 1/n or sum / n.
bool meanOfLastDim(const Value *value, Value *&x);
/// sqrt(mean(x^2 of `x`) + eps).
bool rootMeanSquare(const Value *value, Value *&x, double &eps);

/// w of where(isnan(w), 0, w), as PyTorch's scaled_dot_product_attention is exported; null for anything else.
Value *guarded(const Value *value);

/// `value` as product of factors and one number; looks into products that have no other user.
struct Product {
  llvm::SmallVector<Value *, 4> factors;
  double number = 1;
};
Product product(Value *value);
/// `value` as sum of terms; looks into sums (not into differences) that have no other user.
llvm::SmallVector<Value *, 4> terms(Value *value);

bool usedOnce(const Value *value); ///< and no output
/// Takes numbers out of a product: x * c or x / c. Returns x.
Value *takeScale(Value *value, double &scale);
/// Looks through a reshape between [B, H, ...] and [B H, ...] that nothing else uses.
Value *skipReshape(Value *value);
/// What a transpose of the last two dims, and of nothing else, is of; null if the value is not one.
Value *swappedLastTwo(const Value *value);

/// Affine weights are vectors of the last dim.
bool isVector(const Value *value, int64_t length);

/// Replaces the result of `root` and gives the new value its name and batch-majorness.
void replace(Value *root, Value *with);

} // namespace shardc::match
