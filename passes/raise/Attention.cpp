// SPDX-License-Identifier: Apache-2.0
#include "passes/raise/Distances.h"
#include "passes/raise/Match.h"
#include "passes/raise/Patterns.h"
#include <cmath>

namespace shardc::raising {

using namespace match;

namespace {

/// softmax(scale q k' + bias (or terms of distances) where mask, else fill) v, or softmax(scale q k' + (bias
/// where mask, else fill)) v, all [B, H, S, D]; pieces may come as [B H, S, D] (DeBERTa).
struct Parts {
  Dims scores; ///< [B, H, Sq, Sk]
  Value *query, *keys, *values, *bias = nullptr, *mask = nullptr;
  bool keysLast = false; ///< keys are [.., D, Sk]
  std::optional<DistanceTerm> ofQueries, ofKeys;
  double scale = 1, dropout = 0, fill = 0;
  int64_t id = 0, batchMajor = 0;
  bool maskAdds = false;
  bool guarded = false; ///< what is not a number counts as 0: rows where the mask hides all, if it does so
                        ///< with an infinity
};

/// [B H, S, D] => [B, H, S, D]
Value *splitHeads(Builder &build, Value *value, const Parts &parts) {
  if (value->type().rank() != 3 || value->type().dim(0) != parts.scores[0] * parts.scores[1])
    return value;
  return build.reshape(value, {parts.scores[0], parts.scores[1], value->type().dim(1), value->type().dim(2)});
}

/// dropout(guard(softmax(scores))), dropout and guard optional.
Value *matchWeights(Value *weights, Parts &parts) {
  if (Value *before; unary(weights, kDropout, before) && usedOnce(before)) {
    const Attrs &attrs = weights->op()->attrs;
    parts.dropout = attrs.getFloat("p");
    parts.id = attrs.getInt("id", 0);
    parts.batchMajor = attrs.getInt("batch_major", 0);
    weights = before;
  }
  if (Value *inner = guarded(weights)) {
    parts.guarded = true;
    weights = inner;
  }
  Value *scores;
  if (!unary(weights, kSoftmax, scores) || scores->type().rank() != 4 || !usedOnce(scores))
    return nullptr;
  parts.scores = scores->type().dims;
  return scores;
}

/// Number from which on a mask hides: it swallows any score that is added to it.
constexpr double kLowest = -1e30;
constexpr double kFill = -3.4028234663852886e38; ///< for one that hides with an infinity

/// A mask without what broadcasting does as well.
Value *narrowMask(Value *mask) {
  for (;;) {
    Op *op = mask->op();
    if (op && op->is(kExpand))
      mask = op->operand(0);
    else if (op && op->is(kAnd) && number(op->operand(0)) == 1.0)
      mask = op->operand(1);
    else if (op && op->is(kAnd) && number(op->operand(1)) == 1.0)
      mask = op->operand(0);
    else
      return mask;
  }
}

/// where(mask, scores, lowest) or where(hidden, lowest, scores); anything else is left as it is.
Value *matchMask(Value *scores, Builder &build, Parts &parts) {
  if (!scores->op()->is(kWhere))
    return scores;
  Value *condition = scores->op()->operand(0);
  for (int arm : {1, 2}) {
    Value *kept = scores->op()->operand(arm);
    std::optional<double> fill = number(scores->op()->operand(3 - arm));
    if (!fill || *fill > kLowest || kept->type().dims != scores->type().dims || !usedOnce(kept))
      continue;
    parts.mask = arm == 1 ? condition : build.make(kNot, {condition});
    parts.fill = *fill;
    return kept;
  }
  return scores;
}

/// where(mask, bias, lowest) or where(hidden, lowest, bias), added to the product, as mask and bias; anything else as
/// bias. T5 makes such a sum once, for all layers: apart, its parts are small, since the bias is that of all batches.
void addTerm(Value *term, Builder &build, Parts &parts) {
  Value *bias = term;
  if (term->op() && term->op()->is(kWhere) && !parts.mask) {
    Value *condition = term->op()->operand(0);
    for (int arm : {1, 2}) {
      std::optional<double> fill = number(term->op()->operand(3 - arm));
      if (!fill || *fill > kLowest)
        continue;
      parts.mask = narrowMask(condition);
      if (arm == 2)
        parts.mask = build.make(kNot, {parts.mask});
      parts.fill = *fill;
      parts.maskAdds = true;
      bias = term->op()->operand(arm);
      break;
    }
  }
  if (parts.maskAdds && number(bias) == 0.0)
    return;
  parts.bias = parts.bias ? build.add(parts.bias, bias) : bias;
}

/// The rows of [B, Sq, H, D] where the mask hides all keys become 0.
Value *zeroHiddenRows(Builder &build, Value *out, Value *mask) {
  Value *any = build.make(kReduceMax, {build.cast(mask, DType::F32)}, {{"axes", Ints{-1}}, {"keep_dims", int64_t(1)}});
  Dims dims(4, 1); // [B, H, Sq, 1]
  llvm::copy(any->type().dims, dims.end() - any->type().rank());
  any = build.transpose(build.cast(build.reshape(any, dims), DType::Bool), {0, 2, 1, 3});
  return build.where(any, out, build.scalar(out->type().dtype, 0));
}

/// The product of queries and keys (with numbers).
bool matchProduct(Value *term, const Dims &scores, Parts &parts) {
  double scale = 1;
  Value *inner = takeScale(term, scale);
  if (!inner->op()->is(kMatMul) || !usedOnce(inner) || inner->type().dims != scores ||
      inner->op()->attrs.getInt("transpose_a", 0))
    return false;
  parts.scale = scale;
  parts.query = takeScale(inner->op()->operand(0), parts.scale);
  parts.keys = takeScale(inner->op()->operand(1), parts.scale);
  parts.keysLast = !inner->op()->attrs.getInt("transpose_b", 0); // [.., D, Sk]
  if (Value *before = parts.keysLast ? swappedLastTwo(parts.keys) : nullptr) {
    parts.keys = before;
    parts.keysLast = false;
  }
  return true;
}

/// Terms of distances of the same queries and keys, one of each at most, at the product's scale, and nothing
/// else (but zeros).
bool matchDistanceTerms(Builder &build, llvm::ArrayRef<Value *> others, Parts &parts) {
  for (Value *other : others) {
    if (isNumber(other, 0))
      continue;
    std::optional<DistanceTerm> term = matchDistances(build, other, parts.scores);
    if (!term)
      return false;
    std::optional<DistanceTerm> &place = term->ofKeys ? parts.ofKeys : parts.ofQueries;
    if (place || parts.keysLast || term->content != (term->ofKeys ? parts.keys : parts.query) ||
        std::abs(term->scale - parts.scale) > 1e-6 * std::abs(parts.scale))
      return false;
    place = std::move(term);
  }
  return parts.ofKeys || parts.ofQueries;
}

/// scores = sum of one product of queries and keys and terms that are distances or the bias.
bool matchScores(Value *scores, Builder &build, Parts &parts) {
  llvm::SmallVector<Value *, 4> others;
  bool found = false;
  for (Value *term : terms(scores)) {
    if (!found && matchProduct(term, scores->type().dims, parts))
      found = true;
    else
      others.push_back(term);
  }
  if (!found)
    return false;
  if (!matchDistanceTerms(build, others, parts)) {
    parts.ofQueries = parts.ofKeys = std::nullopt;
    for (Value *term : others)
      addTerm(splitHeads(build, term, parts), build, parts);
  }
  if (parts.keysLast)
    parts.keys = build.transpose(splitHeads(build, parts.keys, parts), {0, 1, 3, 2});
  return true;
}

} // namespace

bool attention(Op &root) {
  Value *weights;
  Parts parts;
  if (!binary(root.result(), kMatMul, weights, parts.values) || root.result()->type().rank() < 3 ||
      root.attrs.getInt("transpose_a", 0) || root.attrs.getInt("transpose_b", 0) || !usedOnce(weights))
    return false;
  weights = skipReshape(weights);
  if (!usedOnce(weights))
    return false;
  Value *scores = matchWeights(weights, parts);
  if (!scores)
    return false;
  Builder build(root.graph(), &root);
  build.stampLike(root);
  scores = skipReshape(matchMask(scores, build, parts));
  if (!matchScores(scores, build, parts))
    return false;

  Value *operands[] = {parts.query, parts.keys, parts.values};
  for (Value *&operand : operands) {
    operand = splitHeads(build, operand, parts);
    if (operand->type().rank() != 4)
      return false;
    operand = build.transpose(operand, {0, 2, 1, 3});
  }
  auto [q, k, v] = operands;
  const Dims &dq = q->type().dims, &dk = k->type().dims, &dv = v->type().dims;
  if (dq[0] != dk[0] || dq[2] != dk[2] || dk[0] != dv[0] || dk[1] != dv[1] || dk[2] != dv[2])
    return false; // keys shared by heads: left as products
  Attrs attrs{{"scale", parts.scale}, {"dropout", parts.dropout}, {"id", parts.id}, {"batch_major", parts.batchMajor}};
  const bool infinite = std::isinf(parts.fill);
  if (parts.mask)
    attrs.set("fill", infinite ? kFill : parts.fill);
  if (parts.maskAdds)
    attrs.set("mask_adds", int64_t(1));
  auto rows = [&](const std::optional<DistanceTerm> &term) { return term ? distanceRows(build, *term) : nullptr; };
  Value *out =
      parts.ofQueries || parts.ofKeys
          ? build.make(kRelativeAttention, {q, k, v, rows(parts.ofQueries), rows(parts.ofKeys), parts.mask},
                       std::move(attrs))
          : build.make(kAttention, {q, k, v, parts.bias, parts.mask}, std::move(attrs));
  out->setBatchMajor(root.result()->batchMajor());
  if (parts.guarded && parts.mask && infinite) // a row of nothing but `fill` is uniform
    out = zeroHiddenRows(build, out, parts.mask);
  out = build.transpose(out, {0, 2, 1, 3});
  replace(root.result(), build.reshape(out, root.result()->type().dims));
  return true;
}

} // namespace shardc::raising
