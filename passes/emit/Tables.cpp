// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Tables.h"

namespace shardc::emit {

void writeBuckets(const Buckets &buckets, const Storage &storage, const CompileOptions &options, plan::Plan &plan) {
  using zero::Role;
  for (auto [i, bucket] : llvm::enumerate(buckets)) {
    plan::Bucket &out = *plan.add_buckets();
    out.set_name(bucket.name);
    out.set_elements(bucket.elements);
    out.set_decay_end(bucket.decayEnd);
    out.set_dtype(unsigned(bucket.dtype));
    auto index = [&](Role role) {
      std::optional<uint32_t> state = storage.state(role, i);
      return state ? int32_t(*state) : -1;
    };
    out.set_parameter_buffer(index(Role::Parameter));
    if (int32_t master = index(Role::Master); master >= 0)
      out.set_master_buffer(uint32_t(master));
    out.set_gradient_buffer(index(Role::Gradient));
    if (DType kept = options.keptGradientType(bucket.dtype); out.gradient_buffer() >= 0 && kept != bucket.dtype)
      out.set_gradient_dtype(unsigned(kept));
    for (Role role : {Role::State0, Role::State1})
      if (std::optional<uint32_t> state = storage.state(role, i))
        out.add_state_buffers(*state);
  }
}

static void writeSource(const ValueSource &source, plan::ValueSource &out) {
  out.set_kind(plan::ValueSource::Kind(source.kind));
  out.set_file(source.file);
  out.set_offset(source.offset);
  out.set_length(source.length);
  out.set_dtype(unsigned(source.dtype));
  out.set_transposed(source.transposed);
}

void writeParameters(const Graph &graph, const Buckets &buckets, plan::Plan &plan) {
  std::vector<std::pair<unsigned, int64_t>> places(graph.parameters.size());
  for (auto [i, bucket] : llvm::enumerate(buckets))
    for (const BucketMember &member : bucket.members)
      places[member.parameter] = {unsigned(i), member.offset};
  for (auto [parameter, place] : llvm::zip(graph.parameters, places)) {
    plan::Parameter &out = *plan.add_parameters();
    out.set_name(parameter.name);
    for (const std::string &tie : parameter.ties)
      out.add_ties(tie);
    out.set_dtype(unsigned(parameter.type.dtype));
    for (int64_t d : parameter.type.dims)
      out.add_dims(d);
    out.set_bucket(place.first);
    out.set_offset(place.second);
    out.set_trainable(parameter.trainable);
    writeSource(parameter.source, *out.mutable_source());
  }
}

void writeInputs(const Graph &graph, const Storage &storage, plan::Plan &plan) {
  for (const Op &op : graph.ops()) {
    if (!op.is(kInput) || zero::roleOf(op))
      continue;
    std::string name = op.attrs.getString("name").str();
    if (llvm::any_of(plan.inputs(), [&](const plan::Input &input) { return input.name() == name; }))
      continue;
    plan::Input &out = *plan.add_inputs();
    const Type &type = op.result()->type();
    out.set_name(name);
    out.set_dtype(unsigned(type.dtype));
    for (int64_t d : type.dims)
      out.add_dims(d);
    out.set_buffer(storage.input(name));
    out.set_low(op.attrs.getInt("low", 0));
    out.set_high(op.attrs.getInt("high", 0));
    out.set_has_ignore(op.attrs.has("ignore"));
    out.set_ignore(op.attrs.getInt("ignore", 0));
  }
}

void writeOutputs(const Graph &graph, const CommandWriter &writer, llvm::StringRef program, plan::Plan &plan) {
  for (auto &[name, value] : graph.outputs()) {
    if (zero::isStateName(name))
      continue;
    plan::Output &out = *plan.add_outputs();
    out.set_name(name);
    out.set_program(program.str());
    *out.mutable_ref() = writer.ref(value);
  }
}

} // namespace shardc::emit
