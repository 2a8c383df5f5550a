// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/base/Tensor.h"
#include "ir/plan/CheckBuckets.h"
#include "ir/plan/Scalars.h"
#include "llvm/ADT/Twine.h"
#include <set>

using namespace llvm;

namespace shardc::check {
namespace {

/// A persistent buffer of that kind and of at least that many bytes.
Error checkHolder(const plan::Plan &plan, const Twine &what, int64_t buffer, plan::BufferKind kind,
                  uint64_t bytes, bool persistent = true) {
  if (buffer < 0 || buffer >= plan.buffers_size())
    return userError(what + ": no such buffer: got " + Twine(buffer));
  const plan::Buffer &b = plan.buffers(int(buffer));
  std::string name = describeBuffer(plan, uint32_t(buffer));
  if (b.kind() != kind || (persistent && !b.persistent()))
    return userError(what + ": " + name + " is of another kind");
  if (b.bytes() < bytes)
    return userError(what + ": " + name + ": size: got " + Twine(b.bytes()) +
                     " bytes, wanted at least " + Twine(bytes));
  return Error::success();
}

/// Trained 16-bit parameters have a master, and it alone may be kept at stage 3; their gradients may be wider than they.
Error checkTypes(const plan::Bucket &b, const std::string &what) {
  DType dtype = DType(b.dtype());
  if (b.has_master_buffer() != (isHalf(dtype) && b.gradient_buffer() >= 0))
    return userError(what + ": master: wanted one for 16-bit parameters that are trained, and only there");
  if (b.has_gradient_dtype() &&
      (b.gradient_buffer() < 0 || b.gradient_dtype() != unsigned(wideType(dtype))))
    return userError(what + ": element type of gradients: got " + Twine(b.gradient_dtype()) +
                     ", wanted " + Twine(unsigned(wideType(dtype))));
  return Error::success();
}

Error checkBuckets(const plan::Plan &plan, std::set<uint32_t> &taken) {
  for (int i = 0; i < plan.buckets_size(); ++i) {
    const plan::Bucket &b = plan.buckets(i);
    std::string what = "bucket " + b.name();
    if (b.dtype() >= kNumDTypes)
      return userError(what + ": no such element type: got " + Twine(b.dtype()));
    if (b.elements() > uint64_t(1) << 46 || b.decay_end() > b.elements() ||
        b.elements() % plan.ranks())
      return userError(what + ": elements: got " + Twine(b.elements()) + ", decay_end " +
                       Twine(b.decay_end()));
    // Optimizer state is cut over the ranks from stage 1 on, gradients from 2, parameters from 3.
    auto take = [&](int64_t buffer, plan::BufferKind kind, Holding::Role role, unsigned stage,
                    bool persistent) -> Error {
      uint64_t bytes = bucketBytes(plan, b, elementType(b, role), stageOf(plan) >= stage);
      if (Error error = checkHolder(plan, what, buffer, kind, bytes, persistent))
        return error;
      if (uint64_t got = plan.buffers(int(buffer)).bytes(); got != bytes)
        return userError(what + ": " + describeBuffer(plan, uint32_t(buffer)) + ": size: got " +
                         Twine(got) + " bytes, wanted " + Twine(bytes) + " at stage " +
                         Twine(stageOf(plan)));
      if (!taken.insert(uint32_t(buffer)).second)
        return userError(what + ": " + describeBuffer(plan, uint32_t(buffer)) + " is used twice");
      return Error::success();
    };
    if (Error error = checkTypes(b, what))
      return error;
    if (!(b.parameter_buffer() == -1 && b.has_master_buffer() && stageOf(plan) >= 3))
      if (Error error =
              take(b.parameter_buffer(), plan::PARAMETER, Holding::Parameters, 3, true))
        return error;
    if (b.has_master_buffer())
      if (Error error = take(b.master_buffer(), plan::OPTIMIZER_STATE, Holding::Master, 1, true))
        return error;
    if (b.gradient_buffer() != -1)
      if (Error error = take(b.gradient_buffer(), plan::GRADIENT, Holding::Gradients, 2, false))
        return error;
    for (uint32_t state : b.state_buffers())
      if (Error error = take(state, plan::OPTIMIZER_STATE, Holding::State, 1, true))
        return error;
  }
  return Error::success();
}

Error checkSource(const plan::Parameter &parameter, int64_t elements, const std::string &what) {
  const plan::ValueSource &s = parameter.source();
  if (!plan::ValueSource_Kind_IsValid(s.kind()) || s.dtype() >= kNumDTypes)
    return userError(what + ": no such kind of source or element type");
  if (s.kind() != plan::ValueSource::FILE)
    return Error::success();
  if (s.file().empty() || s.length() != uint64_t(elements) * byteSize(DType(s.dtype())) ||
      s.offset() > uint64_t(1) << 62)
    return userError(what + ": source: got bytes [" + Twine(s.offset()) + ", +" +
                     Twine(s.length()) + ") of '" + s.file() + "'");
  if (s.transposed() && parameter.dims_size() != 2)
    return userError(what + ": source: only a matrix can be transposed");
  return Error::success();
}

Error checkParameters(const plan::Plan &plan) {
  struct Member {
    uint64_t begin, end;
    int parameter;
  };
  std::vector<std::vector<Member>> members(plan.buckets_size());
  std::set<StringRef> names;
  for (int i = 0; i < plan.parameters_size(); ++i) {
    const plan::Parameter &p = plan.parameters(i);
    std::string what = "parameter " + p.name();
    auto elements = checkedNumElements({p.dims().data(), size_t(p.dims_size())});
    if (!elements)
      return userError(what + ": dims: negative or too large");
    if (p.name().empty() || !names.insert(p.name()).second)
      return userError(what + ": the name is empty or used twice");
    for (const std::string &tie : p.ties())
      if (tie.empty() || !names.insert(tie).second)
        return userError(what + ": the tied name is empty or used twice: got '" + tie + "'");
    if (p.bucket() >= uint32_t(plan.buckets_size()))
      return userError(what + ": no such bucket: got " + Twine(p.bucket()));
    const plan::Bucket &b = plan.buckets(p.bucket());
    if (p.dtype() != b.dtype())
      return userError(what + ": element type: got " + Twine(p.dtype()) + ", wanted " +
                       Twine(b.dtype()) + " as its bucket");
    if (p.offset() > b.elements() || uint64_t(*elements) > b.elements() - p.offset())
      return userError(what + ": outside bucket " + b.name() + ": got elements [" +
                       Twine(p.offset()) + ", +" + Twine(*elements) + "), wanted at most " +
                       Twine(b.elements()));
    uint64_t end = p.offset() + uint64_t(*elements);
    if (p.trainable() && b.gradient_buffer() < 0)
      return userError(what + ": trained, but bucket " + b.name() + " has no gradients");
    if (*elements && (p.dims_size() >= 2 ? end > b.decay_end() : p.offset() < b.decay_end()))
      return userError(what + ": on the wrong side of its bucket's decay_end");
    if (Error error = checkSource(p, *elements, what))
      return error;
    if (*elements)
      members[p.bucket()].push_back({p.offset(), end, i});
  }
  for (auto &list : members) {
    llvm::sort(list, [](const Member &a, const Member &b) { return a.begin < b.begin; });
    for (size_t i = 1; i < list.size(); ++i)
      if (list[i].begin < list[i - 1].end)
        return userError("parameter " + plan.parameters(list[i].parameter).name() +
                         ": overlaps parameter " + plan.parameters(list[i - 1].parameter).name());
  }
  return Error::success();
}

Error checkInputs(const plan::Plan &plan, std::set<uint32_t> &taken) {
  std::set<StringRef> names;
  for (const plan::Input &input : plan.inputs()) {
    std::string what = "input " + input.name();
    auto elements = checkedNumElements({input.dims().data(), size_t(input.dims_size())});
    if (!elements || input.dtype() >= kNumDTypes)
      return userError(what + ": dims or element type: out of range");
    if (input.name().empty() || !names.insert(input.name()).second)
      return userError(what + ": the name is empty or used twice");
    if (Error error = checkHolder(plan, what, input.buffer(), plan::INPUT,
                                  uint64_t(*elements) * byteSize(DType(input.dtype()))))
      return error;
    if (!taken.insert(input.buffer()).second)
      return userError(what + ": " + describeBuffer(plan, input.buffer()) + " is used twice");
    if (input.low() > input.high())
      return userError(what + ": range: got [" + Twine(input.low()) + ", " + Twine(input.high()) +
                       ")");
  }
  return Error::success();
}

Error checkConstants(const plan::Plan &plan, std::set<uint32_t> &taken) {
  for (const plan::ConstantData &constant : plan.constants()) {
    std::string what = "constant";
    if (Error error =
            checkHolder(plan, what, constant.buffer(), plan::CONSTANT, constant.data().size()))
      return error;
    if (!taken.insert(constant.buffer()).second)
      return userError(what + ": " + describeBuffer(plan, constant.buffer()) + " is used twice");
  }
  return Error::success();
}

Error checkOutputs(const plan::Plan &plan) {
  auto starts = programStarts(plan);
  std::set<std::pair<StringRef, StringRef>> names;
  for (const plan::Output &output : plan.outputs()) {
    std::string what = "output " + output.name();
    int program = 0;
    while (program < plan.programs_size() && plan.programs(program).name() != output.program())
      ++program;
    if (program == plan.programs_size())
      return userError(what + ": no such program: got '" + output.program() + "'");
    if (output.name().empty() || !names.insert({output.program(), output.name()}).second)
      return userError(what + ": the name is empty or used twice");
    if (is_contained({"loss_sum", "loss_count"}, StringRef(output.name())) && !isLastStep(plan.programs(program)) &&
        output.program() != "eval")
      return userError(what + ": belongs to no whole step or evaluation: got " + output.program());
    // It must still be there when the host reads it.
    const plan::Buffer &b = plan.buffers(output.ref().buffer());
    uint64_t end = starts[program + 1];
    if (!b.persistent() && b.last() < end)
      return userError(what + ": " + describeBuffer(plan, output.ref().buffer()) +
                       " ends before its program: got " + Twine(b.last()) + ", wanted " +
                       Twine(end));
  }
  for (const plan::Program &program : plan.programs())
    if ((isLastStep(program) || program.name() == "eval") &&
        !names.count({program.name(), "loss_sum"}))
      return userError("program " + program.name() + ": has no output loss_sum");
  for (const plan::Output &a : plan.outputs())
    for (const plan::Output &b : plan.outputs())
      if (&a != &b && a.program() == b.program() && a.ref().buffer() == b.ref().buffer() &&
          tiledBytes(plan, a.ref()).overlaps(tiledBytes(plan, b.ref())))
        return userError("outputs " + a.name() + " and " + b.name() + " of " + a.program() +
                         ": share memory");
  return Error::success();
}

} // namespace

Error checkTables(const plan::Plan &plan) {
  std::set<uint32_t> taken; // buffers with an owner
  if (Error error = checkHolder(plan, "scalars", plan.scalars_buffer(), plan::SCALAR,
                                kNumScalars * sizeof(double)))
    return error;
  taken.insert(plan.scalars_buffer());
  if (plan.has_loss_scale_buffer()) {
    if (Error error = checkHolder(plan, "loss scale", plan.loss_scale_buffer(), plan::OPTIMIZER_STATE,
                                  kNumScaleStates * sizeof(double)))
      return error;
    taken.insert(plan.loss_scale_buffer());
  }
  if (Error error = checkBuckets(plan, taken))
    return error;
  if (Error error = checkParameters(plan))
    return error;
  if (Error error = checkInputs(plan, taken))
    return error;
  if (Error error = checkConstants(plan, taken))
    return error;
  return checkOutputs(plan);
}

} // namespace shardc::check
