// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/plan/Check.h"
#include <map>

using namespace llvm;

namespace shardc::check {
namespace {

/// A set of bytes as disjoint ranges that do not touch.
class Bytes {
public:
  void add(Range range) {
    if (range.empty())
      return;
    auto it = ranges_.upper_bound(range.begin);
    if (it != ranges_.begin() && std::prev(it)->second >= range.begin)
      --it;
    while (it != ranges_.end() && it->first <= range.end) {
      range = {std::min(range.begin, it->first), std::max(range.end, it->second)};
      it = ranges_.erase(it);
    }
    ranges_[range.begin] = range.end;
  }
  void remove(Range range) {
    if (range.empty())
      return;
    auto it = ranges_.upper_bound(range.begin);
    if (it != ranges_.begin() && std::prev(it)->second > range.begin)
      --it;
    while (it != ranges_.end() && it->first < range.end) {
      Range old{it->first, it->second};
      it = ranges_.erase(it);
      if (old.begin < range.begin)
        ranges_[old.begin] = range.begin;
      if (old.end > range.end)
        ranges_[range.end] = old.end;
    }
  }
  bool covers(Range range) const {
    if (range.empty())
      return true;
    auto it = ranges_.upper_bound(range.begin);
    return it != ranges_.begin() && std::prev(it)->second >= range.end;
  }
  void clear() { ranges_.clear(); }

private:
  std::map<uint64_t, uint64_t> ranges_;
};

/// What is known of a buffer: bytes that mean the same on every rank, and slices of which each rank
/// knows its own (offset, stride) only.
class Known {
public:
  void add(Range range) { whole_.add(range); }
  void clear() {
    whole_.clear();
    slices_.clear();
  }
  /// Rank r's slice is written: of the others it has what was there before, which is old now.
  void addSlice(const plan::Plan &plan, const plan::Ref &ref) {
    Range tiled = tiledBytes(plan, ref);
    whole_.remove(tiled);
    llvm::erase_if(slices_, [&](const Slice &s) { return s.tiled.overlaps(tiled); });
    slices_.push_back({ref.rank_stride(), tiled});
  }
  bool covers(const plan::Plan &plan, const plan::Ref &ref) const {
    Range tiled = tiledBytes(plan, ref);
    return whole_.covers(tiled) ||
           (ref.rank_stride() && any_of(slices_, [&](const Slice &s) {
              return s.stride == ref.rank_stride() && s.tiled.begin == tiled.begin;
            }));
  }
  bool coversWhole(Range range) const { return whole_.covers(range); }

private:
  struct Slice {
    uint64_t stride;
    Range tiled;
  };
  Bytes whole_;
  SmallVector<Slice, 1> slices_;
};

class Values {
public:
  explicit Values(const plan::Plan &plan)
      : plan_(plan), starts_(programStarts(plan)), written_(plan.buffers_size()),
        given_(plan.buffers_size(), false) {}

  /// The state before the first program: what the host fills.
  void reset() {
    for (Known &known : written_)
      known.clear();
    auto whole = [&](uint32_t b) { written_[b].add({0, plan_.buffers(b).bytes()}); };
    for (const plan::Bucket &bucket : plan_.buckets()) {
      if (bucket.parameter_buffer() >= 0)
        whole(bucket.parameter_buffer());
      if (bucket.has_master_buffer())
        whole(bucket.master_buffer());
      for (uint32_t state : bucket.state_buffers()) // zeros
        whole(state);
    }
    if (plan_.has_loss_scale_buffer())
      whole(plan_.loss_scale_buffer());
    auto give = [&](uint32_t b, uint64_t bytes) {
      given_[b] = true;
      written_[b].add({0, bytes});
    };
    for (const plan::Input &input : plan_.inputs())
      give(input.buffer(), plan_.buffers(input.buffer()).bytes());
    for (const plan::ConstantData &constant : plan_.constants())
      give(constant.buffer(), constant.data().size());
    give(plan_.scalars_buffer(), plan_.buffers(plan_.scalars_buffer()).bytes());
  }

  Error run(int p) {
    const plan::Program &program = plan_.programs(p);
    // What begins in this program holds nothing yet, even if an earlier run wrote it.
    for (int b = 0; b < plan_.buffers_size(); ++b)
      if (!plan_.buffers(b).persistent() && plan_.buffers(b).first() >= starts_[p])
        written_[b].clear();
    for (int i = 0; i < program.commands_size(); ++i)
      if (Error error = execute(program.commands(i), p, i))
        return error;
    for (const plan::Output &output : plan_.outputs())
      if (output.program() == program.name() &&
          (!isWritten(program, output.ref()) ||
           !written_[output.ref().buffer()].covers(plan_, output.ref())))
        return userError("output " + output.name() + ": nothing in " + program.name() +
                         " writes it");
    // The next step begins with what this one leaves.
    if (program.name() == "update")
      for (const plan::Bucket &bucket : plan_.buckets())
        if (int32_t b = bucket.parameter_buffer();
            b >= 0 && !written_[b].coversWhole({0, plan_.buffers(b).bytes()}))
          return userError("bucket " + bucket.name() +
                           ": after update each rank has only its slice of " +
                           describeBuffer(plan_, uint32_t(b)) + ": nothing gathers the others");
    return Error::success();
  }

private:
  /// By the program itself, if by any: what is left of an earlier one is no result of it.
  bool isWritten(const plan::Program &program, const plan::Ref &ref) const {
    if (given_[ref.buffer()] || plan_.buffers(ref.buffer()).kind() == plan::PARAMETER)
      return true;
    Range bytes = tiledBytes(plan_, ref);
    return any_of(program.commands(), [&](const plan::Command &c) {
      return any_of(c.outputs(), [&](const plan::Ref &out) {
        return out.buffer() == ref.buffer() && tiledBytes(plan_, out).overlaps(bytes);
      });
    });
  }

  Error execute(const plan::Command &c, int p, int index) {
    for (int i = 0; i < c.inputs_size(); ++i) {
      const plan::Ref &ref = c.inputs(i);
      if (isGather(c) && i == 1)
        continue; // only written over
      if (!ref.absent() && !written_[ref.buffer()].covers(plan_, ref))
        return userError(describe(plan_, p, index) + ": input " + Twine(i) + ": reads " +
                         describeBuffer(plan_, ref.buffer()) + " before it is written");
    }
    if (c.has_workspace() && !c.workspace().absent())
      if (Error error = write(c.workspace(), p, index))
        return error;
    for (const plan::Ref &ref : c.outputs())
      if (Error error = write(ref, p, index))
        return error;
    return Error::success();
  }

  Error write(const plan::Ref &ref, int p, int index) {
    Range bytes = *touchedBytes(ref);
    if (bytes.empty())
      return Error::success();
    plan::BufferKind kind = plan_.buffers(ref.buffer()).kind();
    bool state = kind == plan::PARAMETER || kind == plan::OPTIMIZER_STATE;
    if (given_[ref.buffer()] || (state && plan_.programs(p).name() != "update"))
      return userError(describe(plan_, p, index) + ": writes " +
                       describeBuffer(plan_, ref.buffer()) + ", which it may only read");
    if (ref.rank_stride())
      written_[ref.buffer()].addSlice(plan_, ref);
    else if (isDense(ref))
      written_[ref.buffer()].add(bytes);
    else
      addRows(ref);
    return Error::success();
  }

  /// A write with gaps counts row by row, where rows lie close.
  void addRows(const plan::Ref &ref) {
    auto strides = stridesOf(ref);
    int last = ref.dims_size() - 1;
    int64_t size = byteSize(DType(ref.dtype()));
    constexpr int64_t kMaxRows = 1 << 20;
    int64_t rows = 1;
    for (int d = 0; d < last; ++d)
      rows *= ref.dims(d); // of a checked number of elements
    if (strides[last] != 1 || rows > kMaxRows)
      return;
    SmallVector<int64_t, 8> index(ref.dims_size(), 0);
    for (;;) {
      int64_t at = int64_t(ref.offset());
      for (int d = 0; d < last; ++d)
        at += index[d] * strides[d] * size;
      written_[ref.buffer()].add({uint64_t(at), uint64_t(at + ref.dims(last) * size)});
      int d = last - 1;
      while (d >= 0 && ++index[d] == ref.dims(d))
        index[d--] = 0;
      if (d < 0)
        return;
    }
  }

  const plan::Plan &plan_;
  std::vector<uint64_t> starts_;
  std::vector<Known> written_;
  std::vector<bool> given_;
};

} // namespace

// The first step is the hardest: later ones find more written, never less. Micro-steps repeat
// within a step; evaluation may be the first thing that runs.
Error checkValues(const plan::Plan &plan) {
  Values values(plan);
  values.reset();
  for (int p = 0; p < plan.programs_size(); ++p) {
    if (plan.programs(p).name() == "eval")
      values.reset();
    bool repeats = runsPerStep(plan, plan.programs(p)) > 1;
    for (int run = 0; run < 1 + repeats; ++run)
      if (Error error = values.run(p))
        return error;
  }
  return Error::success();
}

} // namespace shardc::check
