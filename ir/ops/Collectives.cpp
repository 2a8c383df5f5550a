// SPDX-License-Identifier: Apache-2.0
// Communication between the ranks of a group, on flat arrays. Slice r of an array of n elements is [r, r + 1)
// * n / ranks.
//   all_gather_start(slice: S[n], into?: T[n * ranks]) {ranks, to} -> T[n * ranks] every rank's slice, end to
//   end; S is T, or f32 where
//                                                                                 attribute `to` says that T
//                                                                                 is a 16-bit float
//   reduce_scatter_start(x: T[n * ranks]) {ranks, in_place}     -> T[n]           slice r of the sum over
//   ranks all_reduce_start(x: T[n]) {ranks}                           -> T[n]           the sum over ranks,
//   over x collective_done(y)                                          -> y              from here on y may
//   be used
// With `into` the gather writes over that array, in which the slice may lie already; with in_place = 1 the
// reduced slice lies over slice r of x. A slice that `to` rounds is first written to slice r of the result.
// Results of a start must not be used but by its done; sums run in rank order.
#include "ir/base/Error.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

/// Attribute `ranks`, at least 1; checks that operand 0 is flat.
int64_t checkFlat(OpCheck &check) {
  int64_t ranks = check.integer("ranks");
  if (!check.failed() && ranks < 1)
    check.fail("attribute 'ranks': got " + llvm::Twine(ranks) + ", wanted at least 1");
  if (check.in(0).rank() != 1)
    check.fail("operand 0: got dims " + formatDims(check.in(0).dims) + ", wanted a flat array");
  return ranks;
}

llvm::Expected<Types> inferAllGather(const Op &op) {
  OpCheck check(op);
  int64_t ranks = checkFlat(check);
  if (check.failed())
    return check.error();
  DType dtype = check.in(0).dtype;
  if (check.hasAttr("to")) {
    std::optional<DType> to = parseDType(check.text("to"));
    if (!to || !isHalf(*to) || dtype != wideType(*to))
      check.fail("attribute 'to': got '" + check.text("to") + "', wanted a 16-bit float, for a slice of f32");
    else
      dtype = *to;
  }
  Type type(dtype, {check.in(0).dim(0) * ranks});
  if (check.has(1)) {
    check.isType(1, type.dtype);
    check.hasDims(1, type.dims);
  }
  return check.done({type});
}

llvm::Expected<Types> inferReduceScatter(const Op &op) {
  OpCheck check(op);
  int64_t ranks = checkFlat(check);
  if (!check.failed() && check.in(0).dim(0) % ranks)
    check.fail("operand 0: got " + llvm::Twine(check.in(0).dim(0)) + " elements, wanted a multiple of " +
               llvm::Twine(ranks) + " ranks");
  if (check.failed())
    return check.error();
  return check.done({Type(check.in(0).dtype, {check.in(0).dim(0) / ranks})});
}

llvm::Expected<Types> inferAllReduce(const Op &op) {
  OpCheck check(op);
  checkFlat(check);
  if (check.failed())
    return check.error();
  return check.done({check.in(0)});
}

llvm::Expected<Types> inferDone(const Op &op) {
  OpCheck check(op);
  const Op *start = op.operand(0) ? op.operand(0)->op() : nullptr;
  if (start && start->def().collective != Collective::Start)
    check.fail("operand 0: got a result of " + start->mnemonic() + ", wanted that of a collective's start");
  if (check.failed())
    return check.error();
  return check.done({check.in(0)});
}

/// The same from one rank's values alone is possible for one rank only.
llvm::Expected<Tensors> evaluateAlone(const Op &op, TensorArgs in) {
  if (op.attrs.getInt("ranks", 1) != 1)
    return userError(op.mnemonic() + llvm::Twine(": needs the values of all ranks"));
  return Tensors{fromDoubles(op.result()->type().dtype, in[0]->dims(), toDoubles(*in[0]))};
}

/// Bytes of memory read and written; those on the wire are the machine model's business.
Cost cost(const Op &op) {
  return {0, double(op.operand(0)->type().numBytes()) + double(op.result()->type().numBytes())};
}
Cost noCost(const Op &) { return {}; }

constexpr const char *kGatherOperands[] = {"slice", "into?"};
constexpr const char *kReduceOperands[] = {"x"};
constexpr InPlace kGatherInto[] = {{1, 0}}, kOverX[] = {{0, 0}};
constexpr const char *kIsCommunication = "it is made after the gradients";

constexpr OpDef start(const char *mnemonic, llvm::Expected<Types> (*infer)(const Op &)) {
  OpDef def{.mnemonic = mnemonic};
  def.operands = kReduceOperands;
  def.infer = infer;
  def.notDifferentiable = kIsCommunication;
  def.evaluate = evaluateAlone;
  def.cost = cost;
  def.effect = true;
  def.collective = Collective::Start;
  return def;
}

constexpr OpDef allGather() {
  OpDef def = start("all_gather_start", inferAllGather);
  def.operands = kGatherOperands;
  def.inPlace = kGatherInto;
  def.inPlaceRequired = true;
  return def;
}

constexpr OpDef allReduce() {
  OpDef def = start("all_reduce_start", inferAllReduce);
  def.inPlace = kOverX;
  def.inPlaceRequired = true;
  return def;
}

} // namespace

constinit const OpDef kAllGatherStart = allGather();
constinit const OpDef kReduceScatterStart = start("reduce_scatter_start", inferReduceScatter);
constinit const OpDef kAllReduceStart = allReduce();
constinit const OpDef kCollectiveDone = {.mnemonic = "collective_done",
                                         .operands = kReduceOperands,
                                         .infer = inferDone,
                                         .notDifferentiable = kIsCommunication,
                                         .evaluate = evaluateAlone,
                                         .cost = noCost,
                                         .view = true,
                                         .effect = true,
                                         .collective = Collective::Done};

} // namespace shardc
