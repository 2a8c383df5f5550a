// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/emit/Tables.h"
#include <utility>

namespace shardc::emit {
namespace {

/// Bytes [begin, end) of a buffer, those of all ranks' slices together.
struct Span {
  int64_t begin, end;
};

Span spanOf(const plan::Ref &ref, unsigned ranks) {
  Dims dims(ref.dims().begin(), ref.dims().end()), strides(ref.strides().begin(), ref.strides().end());
  if (strides.empty())
    strides = rowMajorStrides(dims);
  int64_t low = 0, high = 0, size = byteSize(DType(ref.dtype())), offset = ref.offset();
  if (numElements(dims) == 0)
    return {offset, offset};
  for (size_t i = 0; i < dims.size(); ++i)
    (strides[i] < 0 ? low : high) += (dims[i] - 1) * strides[i];
  return {offset + low * size, offset + (high + 1) * size + int64_t((ranks - 1) * ref.rank_stride())};
}

class Writes {
public:
  explicit Writes(const plan::Plan &plan) : ranks_(plan.ranks()), byBuffer_(plan.buffers_size()) {}

  void number(plan::Ref &ref) const {
    if (ref.absent())
      return;
    Span span = spanOf(ref, ranks_);
    int last = -1, count = 0;
    for (auto &[command, bytes] : byBuffer_[ref.buffer()])
      if (span.begin < bytes.end && bytes.begin < span.end && command != std::exchange(last, command))
        ++count;
    ref.set_version(count);
  }
  void add(int command, const plan::Ref &ref) {
    if (!ref.absent())
      byBuffer_[ref.buffer()].push_back({command, spanOf(ref, ranks_)});
  }

private:
  unsigned ranks_;
  std::vector<std::vector<std::pair<int, Span>>> byBuffer_; ///< command, bytes; a command counts once
};

} // namespace

void writeVersions(plan::Plan &plan) {
  Writes writes(plan); // goes on through the programs of a step; evaluation counts for itself
  int commands = 0;
  for (plan::Program &program : *plan.mutable_programs()) {
    if (program.name() == "eval")
      writes = Writes(plan);
    for (plan::Command &command : *program.mutable_commands()) {
      for (auto *refs : {command.mutable_inputs(), command.mutable_outputs()})
        for (plan::Ref &ref : *refs)
          writes.number(ref);
      for (const plan::Ref &ref : command.outputs())
        writes.add(commands, ref);
      if (command.has_workspace()) {
        writes.number(*command.mutable_workspace());
        writes.add(commands, command.workspace());
      }
      ++commands;
    }
    for (plan::Output &output : *plan.mutable_outputs())
      if (output.program() == program.name())
        writes.number(*output.mutable_ref());
  }
}

} // namespace shardc::emit
