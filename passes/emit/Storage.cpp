// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Storage.h"
#include "ir/plan/Scalars.h"
#include "llvm/Support/xxhash.h"
#include "passes/emit/Arena.h"

namespace shardc::emit {

using zero::Role;

Storage::Storage(plan::Plan &plan, const Buckets &buckets, const CompileOptions &options)
    : plan_(plan), buckets_(buckets), options_(options) {
  string("");
  scalars_ = add("scalars", plan::SCALAR, kNumScalars * sizeof(double), /*persistent=*/true, "");
  for (auto [i, bucket] : llvm::enumerate(buckets))
    for (Role role : {Role::Parameter, Role::Master})
      if (role == Role::Master ? zero::hasMaster(bucket) : zero::keepsParameters(bucket, options))
        stateBuffer(role, i, zero::stateType(bucket, role, options).numBytes());
}

uint32_t Storage::string(llvm::StringRef text) {
  auto [found, isNew] = strings_.try_emplace(text, plan_.strings_size());
  if (isNew)
    plan_.add_strings(text.str());
  return found->second;
}

uint32_t Storage::add(llvm::StringRef name, plan::BufferKind kind, int64_t bytes, bool persistent, llvm::StringRef layer) {
  plan::Buffer &buffer = *plan_.add_buffers();
  buffer.set_name(name.str());
  buffer.set_kind(kind);
  buffer.set_bytes(bytes);
  buffer.set_persistent(persistent);
  buffer.set_layer(string(layer));
  buffer.set_first(UINT64_MAX);
  return plan_.buffers_size() - 1;
}

void Storage::touch(uint32_t index, uint64_t position) {
  plan::Buffer &buffer = *plan_.mutable_buffers(index);
  buffer.set_first(std::min<uint64_t>(buffer.first(), position));
  buffer.set_last(std::max<uint64_t>(buffer.last(), position + 1));
}

uint32_t Storage::stateBuffer(Role role, int64_t bucket, int64_t bytes) {
  auto [found, isNew] = states_.try_emplace(zero::stateName(role, bucket), 0);
  if (isNew) {
    static constexpr plan::BufferKind kKinds[] = {plan::PARAMETER, plan::GRADIENT, plan::OPTIMIZER_STATE, plan::OPTIMIZER_STATE,
                                                  plan::SCALAR, plan::OPTIMIZER_STATE, plan::OPTIMIZER_STATE};
    std::string layer = bucket < 0 ? "" : buckets_[bucket].name;
    // Gradients are dead between update and the next backward pass.
    found->second = add((layer.empty() ? "" : layer + "/") + zero::toString(role).str(), kKinds[unsigned(role)], bytes,
                        /*persistent=*/role != Role::Gradient, layer);
  }
  return found->second;
}

std::optional<uint32_t> Storage::state(Role role, int64_t bucket) const {
  auto found = states_.find(zero::stateName(role, bucket));
  return found == states_.end() ? std::nullopt : std::optional(found->second);
}

Location Storage::locationOf(const Sequence &sequence, const Value *value) const {
  Layout layout = sequence.layoutOf(value);
  Location location = locations_.lookup(layout.root);
  int64_t size = byteSize(value->type().dtype);
  return {location.buffer, location.offset + layout.offset * size, location.rankStride + layout.rankStride * size};
}

void Storage::placeConstant(const Op &op) {
  const Tensor &tensor = op.attrs.getTensor("value");
  llvm::ArrayRef<uint8_t> bytes(static_cast<const uint8_t *>(tensor.bytes()), tensor.numBytes());
  auto &same = constantsByHash_[llvm::xxh3_64bits(bytes) >> 1]; // the map keeps the largest keys for itself
  for (unsigned i : same)
    if (constants_[i].first == tensor) {
      locations_[op.result()] = {constants_[i].second};
      return;
    }
  uint32_t buffer = add(op.result()->name(), plan::CONSTANT, tensor.numBytes(), /*persistent=*/true, "");
  plan::ConstantData &data = *plan_.add_constants();
  data.set_buffer(buffer);
  data.set_data(bytes.data(), bytes.size());
  same.push_back(constants_.size());
  constants_.push_back({tensor, buffer});
  locations_[op.result()] = {buffer};
}

/// Inputs, constants and states: memory that the host or another program fills.
void Storage::placeSource(const Op &op) {
  const Value *value = op.result();
  int64_t bytes = value->type().numBytes();
  if (op.is(kScalars)) {
    locations_[value] = {scalars_};
  } else if (std::optional<Role> role = zero::roleOf(op)) {
    locations_[value] = {stateBuffer(*role, op.attrs.getInt("bucket", -1), bytes)};
  } else if (op.is(kInput)) {
    auto [found, isNew] = inputs_.try_emplace(op.attrs.getString("name"), 0);
    if (isNew)
      found->second = add(op.attrs.getString("name"), plan::INPUT, bytes, /*persistent=*/true, "");
    locations_[value] = {found->second};
  } else if (op.is(kConstant)) {
    placeConstant(op);
  }
}

/// The operand that the result overwrites by definition, -1 if none.
static int required(const Op &op, unsigned result) {
  for (const InPlace &pair : op.def().inPlace)
    if (op.def().inPlaceRequired && pair.result == int(result) && op.operand(pair.operand))
      return pair.operand;
  return -1;
}

/// States that this program leaves, and packed arrays.
void Storage::placeStates(const Sequence &sequence) {
  outputRoots_.clear();
  for (auto &[name, value] : sequence.graph->outputs()) {
    const Value *root = sequence.rootOf(value);
    if (!zero::isStateName(name)) {
      outputRoots_.insert(root);
      continue;
    }
    auto [role, bucket] = zero::parseStateName(name);
    Location location{stateBuffer(role, bucket, value->type().numBytes())};
    locations_[root] = location;
    // What it overwrites lies there too.
    for (int i; (i = required(*root->op(), root->index())) >= 0; locations_[root] = location)
      root = sequence.rootOf(root->op()->operand(i));
  }
  for (const Op &op : sequence.graph->ops())
    if (op.is(kPack) && !locations_.count(op.result()))
      locations_[op.result()] = {add(op.result()->name(), plan::COMMUNICATION, op.result()->type().numBytes(),
                                     /*persistent=*/false, op.layer)};
  for (const Value *whole : sequence.wholes)
    locations_[whole] = {add(whole->name(), plan::ACTIVATION, whole->type().numBytes(), /*persistent=*/false, whole->op()->layer)};
  for (auto &[value, place] : sequence.born) {
    Location packed = locations_.lookup(place.packed);
    packed.offset += place.offset * byteSize(value->type().dtype);
    locations_[value] = packed;
  }
}

void Storage::place(const Sequence &sequence) {
  const Graph &graph = *sequence.graph;
  for (auto [i, bucket] : llvm::enumerate(buckets_))
    for (const BucketMember &member : bucket.members)
      if (const Value *value = graph.parameters[member.parameter].value; value && state(Role::Parameter, i))
        locations_[value] = {*state(Role::Parameter, i), member.offset * byteSize(bucket.dtype)};
  for (const Op &op : graph.ops())
    placeSource(op);
  placeStates(sequence);
  for (auto [i, item] : llvm::enumerate(sequence.items)) {
    auto use = [&](const Value *v) {
      if (v)
        lastUse_[sequence.rootOf(v)] = position_ + i;
    };
    if (item.kind == Item::Copy)
      use(item.value);
    if (item.kind != Item::Run)
      continue;
    llvm::for_each(item.op->operands(), use);
    if (item.op->def().collective == Collective::Done) // until then the operands are in use
      llvm::for_each(item.op->operand(0)->op()->operands(), use);
  }
  for (auto [i, item] : llvm::enumerate(sequence.items))
    placeItem(sequence, item, position_ + i);
  position_ += sequence.items.size();
}

void Storage::placeItem(const Sequence &sequence, const Item &item, uint64_t position) {
  auto use = [&](const Value *v) {
    if (v)
      touch(locationOf(sequence, v).buffer, position);
  };
  if (item.kind != Item::Run) {
    use(item.place.packed);
    use(item.value);
    return;
  }
  const Op &op = *item.op;
  llvm::for_each(op.operands(), use);
  if (op.def().collective == Collective::Done) { // until here the start used its operands
    const Op &start = *op.operand(0)->op();
    for (unsigned i = 0; i < start.numOperands(); ++i)
      if (int(i) != overwritten(start, 0))
        use(start.operand(i));
    return;
  }
  for (unsigned i = 0; i < op.numResults(); ++i)
    placeResult(sequence, op, i, position);
  if (int64_t bytes = workspaceBytes(op)) {
    uint32_t buffer = add("workspace", plan::WORKSPACE, bytes, /*persistent=*/false, op.layer);
    touch(buffer, position);
    workspaces_[&op] = buffer;
  }
}

uint32_t Storage::takeOver(uint32_t operand, const Value *value, uint64_t position) {
  plan::Buffer &old = *plan_.mutable_buffers(operand);
  uint32_t buffer = add(value->name(), old.kind(), value->type().numBytes(), /*persistent=*/false, plan_.strings(old.layer()));
  plan_.mutable_buffers(operand)->set_last(position); // what is read here is gone afterwards
  return buffer;
}

void Storage::placeResult(const Sequence &sequence, const Op &op, unsigned result, uint64_t position) {
  const Value *value = op.result(result);
  int operand = -1;
  Location location;
  if (sequence.rootOf(value) != value) { // part of a whole
    location = locationOf(sequence, value);
  } else if (locations_.count(value)) { // a state, or born in a packed array
    location = locations_[value];
    operand = findInPlace(sequence, op, result, location);
  } else if (op.is(kReduceScatterStart) && op.attrs.getInt("in_place", 0)) {
    location = locationOf(sequence, op.operand(0));
    location.rankStride = value->type().numBytes();
  } else if (operand = required(op, result); operand >= 0) {
    location = locationOf(sequence, op.operand(operand));
    if (plan_.buffers(location.buffer).kind() == plan::ACTIVATION && !plan_.buffers(location.buffer).persistent())
      location = {takeOver(location.buffer, value, position)};
  } else if (operand = findDying(sequence, op, result, position); operand >= 0) {
    location = {takeOver(locationOf(sequence, op.operand(operand)).buffer, value, position)};
  } else {
    bool output = outputRoots_.contains(value); // what the host reads after the program outlives it
    plan::BufferKind kind = output ? plan::SCALAR : op.def().collective == Collective::Start ? plan::COMMUNICATION : plan::ACTIVATION;
    location = {add(value->name(), kind, value->type().numBytes(), output, op.layer)};
  }
  overwritten_[{&op, result}] = operand;
  touch(location.buffer, position);
  locations_[value] = location;
}

int Storage::findInPlace(const Sequence &sequence, const Op &op, unsigned result, Location location) const {
  for (unsigned i = 0; i < op.numOperands(); ++i)
    if (const Value *v = op.operand(i);
        v && v->type() == op.result(result)->type() && locationOf(sequence, v) == location &&
        layoutFits(sequence.layoutOf(v), v->type().dims, kContiguous))
      return int(i);
  return -1;
}

int Storage::findDying(const Sequence &sequence, const Op &op, unsigned result, uint64_t position) const {
  const Value *value = op.result(result);
  for (const InPlace &pair : op.def().inPlace) {
    const Value *operand = op.operand(pair.operand);
    if (pair.result != int(result) || !operand)
      continue;
    Layout layout = sequence.layoutOf(operand);
    const Value *root = layout.root;
    const plan::Buffer &buffer = plan_.buffers(locations_.lookup(root).buffer);
    bool whole = layout.offset == 0 && root->type().numBytes() == value->type().numBytes() &&
                 operand->type().dims == value->type().dims && layoutFits(layout, operand->type().dims, kContiguous);
    bool free = whole && !buffer.persistent() && buffer.kind() == plan::ACTIVATION && lastUse_.lookup(root) == position &&
                !outputRoots_.contains(value);
    // Nobody else may read these bytes in this command, and no other result may take them.
    for (unsigned i = 0; free && i < op.numOperands(); ++i)
      if (op.operand(i) && int(i) != pair.operand)
        free = locationOf(sequence, op.operand(i)).buffer != locations_.lookup(root).buffer;
    for (unsigned r = 0; free && r < result; ++r)
      free = overwritten(op, r) != pair.operand;
    if (free)
      return pair.operand;
  }
  return -1;
}

bool Storage::holdsBucket(uint32_t buffer) const {
  plan::BufferKind kind = plan_.buffers(buffer).kind();
  return kind == plan::PARAMETER || kind == plan::GRADIENT || kind == plan::OPTIMIZER_STATE || kind == plan::COMMUNICATION;
}

int Storage::overwritten(const Op &op, unsigned result) const {
  auto found = overwritten_.find({&op, result});
  return found == overwritten_.end() ? -1 : found->second;
}

int64_t Storage::workspaceBytes(const Op &op) const {
  return options_.target == "cuda" && op.def().workspace ? op.def().workspace(op) : 0;
}

void Storage::pack(uint64_t capacity) {
  uint64_t total = 0;
  for (const plan::Program &program : plan_.programs())
    total += program.commands_size();
  for (plan::Buffer &buffer : *plan_.mutable_buffers()) {
    if (buffer.last() == 0) // nobody touches it: only the host
      buffer.set_first(0);
    if (buffer.persistent()) {
      buffer.set_first(0);
      buffer.set_last(total);
    }
  }
  packSpace(plan_, capacity);
}

} // namespace shardc::emit
