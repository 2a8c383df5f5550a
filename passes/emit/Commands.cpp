// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Commands.h"
#include "passes/Timeline.h"
#include "passes/emit/CommandAttr.h"

namespace shardc::emit {

static plan::Ref absentRef() {
  plan::Ref ref;
  ref.set_absent(true);
  return ref;
}

static plan::Ref denseRef(Location location, DType dtype, llvm::ArrayRef<int64_t> dims) {
  plan::Ref ref;
  ref.set_buffer(location.buffer);
  ref.set_offset(location.offset);
  ref.set_rank_stride(location.rankStride);
  ref.set_dtype(unsigned(dtype));
  for (int64_t d : dims)
    ref.add_dims(d);
  return ref;
}

/// The bucket that `root` is, or lies in; -1 if it is anything else.
static int64_t bucketOf(const Graph &graph, const Value *root) {
  const Op *op = root->op();
  for (const Parameter &p : graph.parameters)
    if (p.value == root)
      return p.bucket;
  if (op->is(kAllGatherStart)) // of a slice of parameters; its done is a view
    op = op->operand(0)->op();
  return op->is(kInput) ? op->attrs.getInt("bucket", -1) : -1;
}

bool CommandWriter::isPlace(const Value *root, int64_t offset, int64_t elements) const {
  const int64_t index = bucketOf(*sequence_.graph, root);
  if (index < 0)
    return false;
  const Bucket &bucket = storage_.buckets()[index];
  int64_t at = offset, end = offset + elements;
  for (const BucketMember &member : bucket.members)
    if (member.offset == at && at < end)
      at += sequence_.graph->parameters[member.parameter].type.numElements();
  return at == end;
}

plan::Ref CommandWriter::ref(const Value *value) const {
  Layout layout = sequence_.layoutOf(value);
  const Type &type = value->type();
  plan::Ref ref = denseRef(storage_.locationOf(sequence_, value), type.dtype, type.dims);
  // Strides are left out where all of an array is meant, or a place in a bucket.
  bool part = layout.root->type().numBytes() != type.numBytes() && !ref.rank_stride() &&
              !(storage_.holdsBucket(ref.buffer()) && isPlace(layout.root, ref.offset() / byteSize(type.dtype), type.numElements()));
  if (part || !layoutFits(layout, type.dims, kContiguous))
    for (int64_t stride : layout.strides)
      ref.add_strides(stride);
  return ref;
}

plan::Ref CommandWriter::packedRef(PackedPlace place, llvm::ArrayRef<int64_t> dims) const {
  DType dtype = place.packed->type().dtype;
  Location location = storage_.locationOf(sequence_, place.packed);
  location.offset += place.offset * byteSize(dtype);
  return denseRef(location, dtype, dims);
}

void CommandWriter::writeOp(const Op &op, plan::Command &command) {
  command.set_kernel(op.mnemonic().str());
  for (auto &[name, value] : op.attrs)
    addAttr(command, name, value);
  bool waits = op.def().collective == Collective::Done; // the value is there already
  for (const Value *v : op.operands())
    if (!waits)
      *command.add_inputs() = v ? ref(v) : absentRef();
  bool overwrites = false;
  for (unsigned i = 0; !waits && i < op.numResults(); ++i) {
    *command.add_outputs() = ref(op.result(i));
    command.add_in_place(storage_.overwritten(op, i) + 1);
    overwrites |= storage_.overwritten(op, i) >= 0;
  }
  if (!overwrites)
    command.clear_in_place();
  if (int64_t bytes = storage_.workspaceBytes(op))
    *command.mutable_workspace() = denseRef({storage_.workspaceOf(op), 0}, DType::U8, {bytes});
  command.set_place(storage_.string(op.place));
  command.set_layer(storage_.string(op.layer));
  command.set_phase(unsigned(op.phase));
  Cost cost = costOf(op);
  command.set_flops(cost.flops);
  command.set_moved_bytes(cost.bytes);
}

/// Zeros over a part of a packed array.
void CommandWriter::writeFill(const Item &item, plan::Command &command) {
  DType dtype = item.place.packed->type().dtype;
  command.set_kernel("fused");
  addAttr(command, "body", ("t0: " + toString(dtype) + " = 0.0;").str());
  addAttr(command, "outputs", std::string("t0"));
  addAttr(command, "dims", Ints{item.count});
  *command.add_outputs() = packedRef(item.place, {item.count});
  command.set_place(storage_.string("zero gradients"));
  command.set_moved_bytes(double(item.count * byteSize(dtype)));
}

void CommandWriter::writeCopy(const Item &item, plan::Command &command) {
  const Type &type = item.value->type();
  command.set_kernel("copy");
  *command.add_inputs() = ref(item.value);
  *command.add_outputs() = packedRef(item.place, type.dims);
  command.set_place(storage_.string("copy gradient"));
  command.set_moved_bytes(2.0 * double(type.numBytes()));
}

/// What a command computes in: the type of its first result.
static DType computeType(const plan::Command &command) {
  return command.outputs_size() ? DType(command.outputs(0).dtype()) : DType::F32;
}

void CommandWriter::write(plan::Program &program) {
  for (const Item &item : sequence_.items) {
    plan::Command &command = *program.add_commands();
    if (item.kind == Item::Run)
      writeOp(*item.op, command);
    else {
      command.set_layer(storage_.string(item.op->layer));
      command.set_phase(unsigned(Phase::Backward));
      item.kind == Item::Fill ? writeFill(item, command) : writeCopy(item, command);
    }
    command.set_predicted_us(item.kind == Item::Run
                                 ? microseconds(*item.op, machine_)
                                 : machine_.microseconds({0, command.moved_bytes()}, computeType(command), Phase::Backward));
  }
  synchronise(program);
}

/// A collective starts when the last computation before it in the list has ended, on a stream of its kind; its done waits for it.
void CommandWriter::synchronise(plan::Program &program) {
  constexpr unsigned kGathers = 1, kReductions = 2;
  llvm::DenseMap<const Op *, uint32_t> arrival; ///< event by start
  auto newEvent = [&] {
    plan_.set_events(plan_.events() + 1);
    return plan_.events() - 1;
  };
  plan::Command *lastCompute = nullptr;
  for (auto [i, item] : llvm::enumerate(sequence_.items)) {
    plan::Command &command = *program.mutable_commands(i);
    Collective kind = item.kind == Item::Run ? item.op->def().collective : Collective::None;
    if (kind == Collective::Start) {
      command.set_stream(item.op->is(kAllGatherStart) ? kGathers : kReductions);
      command.set_communicator(command.stream());
      if (lastCompute && lastCompute->signals_size() == 0)
        lastCompute->add_signals(newEvent());
      if (lastCompute)
        command.add_waits(lastCompute->signals(0));
      command.add_signals(arrival[item.op] = newEvent());
      continue;
    }
    if (kind == Collective::Done)
      command.add_waits(arrival.lookup(item.op->operand(0)->op()));
    lastCompute = &command;
  }
}

} // namespace shardc::emit
