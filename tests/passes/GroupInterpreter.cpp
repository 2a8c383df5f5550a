// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/GroupInterpreter.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"

using namespace llvm;

namespace shardc {

GroupInterpreter::GroupInterpreter(const plan::Plan &plan, PlanInterpreter::Memory memory) : plan_(plan) {
  for (unsigned r = 0; r < plan.ranks(); ++r) {
    ranks_.push_back(std::make_unique<PlanInterpreter>(plan, memory, r));
    ranks_[r]->setScalar(kRank, r);
  }
}

/// Slice r of a bucket in a buffer that holds the whole, or that slice only.
static plan::Ref sliceRef(const plan::Plan &plan, const plan::Bucket &bucket, uint32_t buffer, unsigned rank) {
  int64_t n = bucket.elements() / plan.ranks(), size = byteSize(DType(bucket.dtype()));
  bool whole = plan.buffers(buffer).bytes() == bucket.elements() * size;
  plan::Ref ref;
  ref.set_buffer(buffer);
  ref.set_dtype(bucket.dtype());
  ref.set_offset(whole ? rank * n * size : 0);
  ref.add_dims(n);
  return ref;
}

void GroupInterpreter::writeParameter(const plan::Parameter &parameter, const Tensor &tensor) {
  const plan::Bucket &bucket = plan_.buckets(parameter.bucket());
  std::vector<double> values = toDoubles(tensor);
  int64_t n = bucket.elements() / size();
  for (unsigned r = 0; r < size(); ++r)
    for (unsigned owner = 0; owner < size(); ++owner) {
      plan::Ref ref = sliceRef(plan_, bucket, bucket.parameter_buffer(), owner);
      bool whole = plan_.buffers(ref.buffer()).bytes() == bucket.elements() * byteSize(tensor.dtype());
      if (!whole && owner != r)
        continue;
      std::vector<double> slice = toDoubles(ranks_[r]->read(ref));
      for (int64_t i = 0; i < n; ++i)
        if (int64_t at = owner * n + i - int64_t(parameter.offset()); at >= 0 && at < int64_t(values.size()))
          slice[i] = values[at];
      ranks_[r]->write(ref, fromDoubles(tensor.dtype(), {n}, slice));
    }
}

Tensor GroupInterpreter::readOwned(const plan::Parameter &parameter, bool gradient) const {
  const plan::Bucket &bucket = plan_.buckets(parameter.bucket());
  std::vector<double> all;
  for (unsigned r = 0; r < ranks_.size(); ++r) {
    uint32_t buffer = gradient ? bucket.gradient_buffer() : bucket.parameter_buffer();
    std::vector<double> slice = toDoubles(ranks_[r]->read(sliceRef(plan_, bucket, buffer, r)));
    all.insert(all.end(), slice.begin(), slice.end());
  }
  Dims dims(parameter.dims().begin(), parameter.dims().end());
  auto begin = all.begin() + parameter.offset();
  return fromDoubles(DType(parameter.dtype()), dims, std::vector<double>(begin, begin + numElements(dims)));
}

void GroupInterpreter::communicate(const plan::Command &command) {
  std::vector<std::vector<double>> in;
  for (auto &rank : ranks_)
    in.push_back(toDoubles(rank->read(command.inputs(0))));
  std::vector<double> result;
  if (command.kernel() == "all_gather_start") {
    for (auto &slice : in)
      result.insert(result.end(), slice.begin(), slice.end());
  } else {
    result.assign(in[0].size(), 0);
    for (auto &x : in)
      for (size_t i = 0; i < x.size(); ++i)
        result[i] += x[i];
  }
  const plan::Ref &out = command.outputs(0);
  size_t n = out.dims(0);
  for (unsigned r = 0; r < size(); ++r) {
    auto begin = result.begin() + (n == result.size() ? 0 : r * n);
    ranks_[r]->write(out, fromDoubles(DType(out.dtype()), {int64_t(n)}, std::vector<double>(begin, begin + n)));
  }
}

Error GroupInterpreter::run(StringRef program) {
  for (const plan::Command &command : findProgram(plan_, program)->commands()) {
    if (command.communicator())
      communicate(command);
    else
      for (auto &rank : ranks_)
        if (Error error = rank->execute(command))
          return error;
  }
  return Error::success();
}

} // namespace shardc
