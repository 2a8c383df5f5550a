// SPDX-License-Identifier: Apache-2.0
// Where operands lie in the memory of buckets.
#include "ir/base/Error.h"
#include "ir/plan/CheckBuckets.h"

using namespace llvm;

namespace shardc::check {
namespace {

class Places {
public:
  Places(const plan::Plan &plan, const Holdings &holdings)
      : plan_(plan), holdings_(holdings), members_(plan.buckets_size()) {
    for (const plan::Parameter &p : plan.parameters()) {
      int64_t elements = 1;
      for (int64_t dim : p.dims())
        elements *= dim;
      if (!elements)
        continue;
      members_[p.bucket()].push_back({p.offset(), p.offset() + uint64_t(elements)});
    }
    for (auto &list : members_)
      llvm::sort(list, [](Range a, Range b) { return a.begin < b.begin; });
  }

  Error check(const plan::Ref &ref, bool write) const {
    if (ref.absent())
      return Error::success();
    const Holding &holding = holdings_[ref.buffer()];
    Range bytes = *touchedBytes(ref);
    if (holding.role == Holding::None && ref.rank_stride())
      return userError("slice of a rank: " + describeBuffer(plan_, ref.buffer()) +
                       " holds no bucket");
    if (holding.role == Holding::None)
      return checkPart(ref, write);
    if (bytes.empty())
      return Error::success();
    const plan::Bucket &bucket = plan_.buckets(holding.bucket);
    if (holding.role != Holding::State && ref.dtype() != uint32_t(holding.dtype))
      return userError("element type: got " + Twine(ref.dtype()) + ", wanted " +
                       Twine(unsigned(holding.dtype)) + " as its bucket " + bucket.name());
    bool whole = isAllOf(plan_, ref) || isRankSlice(ref, bucket);
    bool inParts = holding.role == Holding::Parameters || holding.role == Holding::Gradients;
    if (whole ||
        (!holding.slice && inParts && !ref.rank_stride() &&
         ((isInOneParameter(bytes, holding) && (write || saysPart(ref, bytes, holding))) ||
          isRun(ref, bytes, holding) ||
          (write && holding.role == Holding::Gradients && isFill(ref, bytes, holding)))))
      return Error::success();
    return userError(
        "bytes [" + Twine(bytes.begin) + ", " + Twine(bytes.end) + ") of " +
        describeBuffer(plan_, ref.buffer()) + ": wanted " +
        (holding.slice || !inParts
             ? "all of it"
             : "one parameter (a part of it with strides), adjacent ones, the whole bucket, or "
               "the rank's slice"));
  }

private:
  /// Reading a part of an array is said by strides; scalars have none.
  Error checkPart(const plan::Ref &ref, bool write) const {
    if (write || ref.strides_size() || !ref.dims_size() || isAllOf(plan_, ref))
      return Error::success();
    return userError("reads a part of " + describeBuffer(plan_, ref.buffer()) +
                     " without strides: got " + Twine(numBytes(ref)) + " of " +
                     Twine(plan_.buffers(ref.buffer()).bytes()) + " bytes");
  }

  /// A part of a parameter is read with strides, too; all of one need not be of this bucket for
  /// that.
  bool saysPart(const plan::Ref &ref, Range bytes, const Holding &holding) const {
    uint64_t size = byteSize(holding.dtype);
    return ref.strides_size() || !ref.dims_size() || any_of(members_[holding.bucket], [&](Range r) {
             return bytes.begin == r.begin * size && bytes.end == r.end * size;
           });
  }

  /// Slice r of a buffer that holds the whole bucket.
  bool isRankSlice(const plan::Ref &ref, const plan::Bucket &bucket) const {
    return ref.rank_stride() && touchedBytes(ref)->begin == 0 && !holdings_[ref.buffer()].slice &&
           ref.rank_stride() ==
               bucketBytes(plan_, bucket, holdings_[ref.buffer()].dtype, /*slice=*/true);
  }

  bool isInOneParameter(Range bytes, const Holding &holding) const {
    ArrayRef<Range> list = members_[holding.bucket];
    uint64_t size = byteSize(holding.dtype);
    auto next = llvm::upper_bound(list, bytes.begin / size,
                                  [](uint64_t at, Range r) { return at < r.begin; });
    return next != list.begin() && bytes.end <= std::prev(next)->end * size;
  }

  /// Parameters that are neighbours without a gap: weights of a merged product.
  bool isRun(const plan::Ref &ref, Range bytes, const Holding &holding) const {
    if (!elementsAreDisjoint(ref) || !isDense(ref))
      return false;
    uint64_t size = byteSize(holding.dtype), at = bytes.begin;
    for (Range r : members_[holding.bucket])
      if (r.begin * size == at && at < bytes.end)
        at = r.end * size;
    return at == bytes.end;
  }

  /// What no gradient covers is filled: from border to border of parameters.
  bool isFill(const plan::Ref &ref, Range bytes, const Holding &holding) const {
    uint64_t size = byteSize(holding.dtype);
    auto isBorder = [&](uint64_t at) {
      return at == 0 || at == plan_.buckets(int(holding.bucket)).elements() * size ||
             any_of(members_[holding.bucket],
                    [&](Range r) { return at == r.begin * size || at == r.end * size; });
    };
    return elementsAreDisjoint(ref) && isDense(ref) && isBorder(bytes.begin) && isBorder(bytes.end);
  }

  const plan::Plan &plan_;
  const Holdings &holdings_;
  std::vector<std::vector<Range>>
      members_; ///< of each bucket: elements of its parameters, in order
};

/// The scale of the gradients adds up whatever it is given, and divides by what the step counted.
Error checkScale(const plan::Plan &plan, const plan::Command &c) {
  bool scaled = c.kernel() == "loss_scale";
  if (!scaled && c.kernel() != "grad_scale")
    return Error::success();
  if (scaled && (!plan.has_loss_scale_buffer() || c.inputs_size() < 3 || c.inputs(2).absent() ||
                 c.inputs(2).buffer() != plan.loss_scale_buffer()))
    return userError("input 2: wanted the loss scale");
  for (int k = scaled ? 3 : 2; k < c.inputs_size(); ++k)
    if (!c.inputs(k).absent() && !isAllOf(plan, c.inputs(k)))
      return userError("input " + Twine(k) + ": wanted all of " +
                       describeBuffer(plan, c.inputs(k).buffer()));
  const plan::Output *count = findOutput(plan, "train", "loss_count");
  if (!count)
    count = findOutput(plan, "train_last", "loss_count");
  if (!count || c.inputs_size() == 0 || c.inputs(0).absent() ||
      c.inputs(0).buffer() != count->ref().buffer() || !sameLayout(plan, c.inputs(0), count->ref()))
    return userError("input 0: wanted output loss_count");
  return Error::success();
}

} // namespace

Error checkPlaces(const plan::Plan &plan) {
  Expected<Holdings> holdings = Holdings::find(plan);
  if (!holdings)
    return holdings.takeError();
  Places places(plan, *holdings);
  auto checkCommand = [&](const plan::Command &c) -> Error {
    for (int k = 0; k < c.inputs_size(); ++k)
      if (Error error = at(places.check(c.inputs(k), /*write=*/false),
                           [&] { return "input " + std::to_string(k); }))
        return error;
    for (int k = 0; k < c.outputs_size(); ++k)
      if (Error error = at(places.check(c.outputs(k), /*write=*/true),
                           [&] { return "output " + std::to_string(k); }))
        return error;
    if (c.has_workspace() && !c.workspace().absent() &&
        (*holdings)[c.workspace().buffer()].role != Holding::None)
      return userError("workspace in the memory of a bucket");
    return checkScale(plan, c);
  };
  for (int p = 0; p < plan.programs_size(); ++p)
    for (int i = 0; i < plan.programs(p).commands_size(); ++i)
      if (Error error =
              at(checkCommand(plan.programs(p).commands(i)), [&] { return describe(plan, p, i); }))
        return error;
  return Error::success();
}

} // namespace shardc::check
