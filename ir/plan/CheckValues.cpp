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

class Values {
public:
  explicit Values(const plan::Plan &plan)
      : plan_(plan), starts_(programStarts(plan)), written_(plan.buffers_size()),
        given_(plan.buffers_size(), false) {}

  /// The state before the first program: what the host fills.
  void reset() {
    for (Bytes &bytes : written_)
      bytes.clear();
    auto whole = [&](uint32_t b) { written_[b].add({0, plan_.buffers(b).bytes()}); };
    for (const plan::Bucket &bucket : plan_.buckets()) {
      whole(bucket.parameter_buffer());
      for (uint32_t state : bucket.state_buffers()) // zeros
        whole(state);
    }
    for (const plan::Bucket &bucket : plan_.buckets())
      if (int b = bucket.gradient_buffer(); b >= 0 && plan_.buffers(b).persistent())
        whole(uint32_t(b)); // zeros
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
          !written_[output.ref().buffer()].covers(*touchedBytes(output.ref())))
        return userError("output " + output.name() + ": nothing in " + program.name() +
                         " writes it");
    return Error::success();
  }

private:
  Error execute(const plan::Command &c, int p, int index) {
    for (int i = 0; i < c.inputs_size(); ++i) {
      const plan::Ref &ref = c.inputs(i);
      if (!ref.absent() && !written_[ref.buffer()].covers(*touchedBytes(ref)))
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
    if (isDense(ref))
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
  std::vector<Bytes> written_;
  std::vector<bool> given_;
};

/// A trained bucket whose parameters no update writes would stay as it is, silently.
Error checkUpdates(const plan::Plan &plan) {
  std::vector<bool> written(plan.buffers_size(), false);
  const plan::Program *update = findProgram(plan, "update");
  if (update)
    for (const plan::Command &c : update->commands())
      for (const plan::Ref &ref : c.outputs())
        written[ref.buffer()] = true;
  for (const plan::Bucket &bucket : plan.buckets())
    if (update && bucket.gradient_buffer() >= 0 && !written[bucket.parameter_buffer()])
      return userError("bucket " + bucket.name() + ": nothing in update writes its parameters");
  return Error::success();
}

} // namespace

// The first step is the hardest: later ones find more written, never less. Micro-steps repeat
// within a step; evaluation may be the first thing that runs.
Error checkValues(const plan::Plan &plan) {
  if (Error error = checkUpdates(plan))
    return error;
  Values values(plan);
  values.reset();
  for (int p = 0; p < plan.programs_size(); ++p) {
    StringRef name = plan.programs(p).name();
    if (name == "eval")
      values.reset();
    bool repeats = name == "train_middle" || (name == "train" && plan.accumulate() > 1);
    for (int run = 0; run < 1 + repeats; ++run)
      if (Error error = values.run(p))
        return error;
  }
  return Error::success();
}

} // namespace shardc::check
