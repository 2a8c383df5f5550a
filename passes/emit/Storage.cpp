// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Storage.h"
#include "ir/plan/Scalars.h"
#include "llvm/Support/xxhash.h"
#include "passes/memory/Packing.h"

namespace shardc::emit {

Storage::Storage(plan::Plan &plan, const Buckets &buckets) : plan_(plan), buckets_(buckets) {
  string("");
  scalars_ = add("scalars", plan::SCALAR, kNumScalars * sizeof(double), /*persistent=*/true, "");
  for (const Bucket &bucket : buckets) {
    int64_t bytes = bucket.elements * byteSize(bucket.dtype);
    BucketBuffers buffers;
    buffers.parameter = add(bucket.name + "/parameters", plan::PARAMETER, bytes, /*persistent=*/true, bucket.name);
    bucketBuffers_.push_back(buffers);
  }
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
  firstOwner_.push_back(plan_.buffers_size() - 1);
  return plan_.buffers_size() - 1;
}

void Storage::touch(uint32_t index, uint64_t position) {
  plan::Buffer &buffer = *plan_.mutable_buffers(index);
  buffer.set_first(std::min<uint64_t>(buffer.first(), position));
  buffer.set_last(std::max<uint64_t>(buffer.last(), position + 1));
}

/// Inputs, constants and buckets: memory that the host or another program fills.
void Storage::placeSource(const Op &op) {
  const Value *value = op.result();
  const Type &type = value->type();
  if (op.is(kScalars)) {
    locations_[value] = {scalars_, 0};
  } else if (op.is(kInput) && op.attrs.has(kBucketAttr)) {
    unsigned index = op.attrs.getInt(kBucketAttr);
    BucketBuffers &buffers = bucketBuffers_[index];
    llvm::StringRef role = op.attrs.getString(kRoleAttr);
    if (role == kRoleParameter) {
      locations_[value] = {uint32_t(buffers.parameter), 0};
    } else if (role == kRoleGradient) {
      locations_[value] = {uint32_t(buffers.gradient), 0};
    } else {
      buffers.states.push_back(add(buckets_[index].name + "/" + role.str(), plan::OPTIMIZER_STATE, type.numBytes(),
                                   /*persistent=*/true, buckets_[index].name));
      locations_[value] = {buffers.states.back(), 0};
    }
  } else if (op.is(kInput)) {
    auto [found, isNew] = inputs_.try_emplace(op.attrs.getString("name"), 0);
    if (isNew)
      found->second = add(op.attrs.getString("name"), plan::INPUT, type.numBytes(), /*persistent=*/true, "");
    locations_[value] = {found->second, 0};
  } else if (op.is(kConstant)) {
    const Tensor &tensor = op.attrs.getTensor("value");
    llvm::ArrayRef<uint8_t> bytes(static_cast<const uint8_t *>(tensor.bytes()), tensor.numBytes());
    auto &same = constantsByHash_[llvm::xxh3_64bits(bytes) >> 1]; // the map keeps the largest keys for itself
    for (unsigned i : same)
      if (constants_[i].first == tensor) {
        locations_[value] = {constants_[i].second, 0};
        return;
      }
    uint32_t buffer = add(value->name(), plan::CONSTANT, tensor.numBytes(), /*persistent=*/true, "");
    plan::ConstantData &data = *plan_.add_constants();
    data.set_buffer(buffer);
    data.set_data(bytes.data(), bytes.size());
    same.push_back(constants_.size());
    constants_.push_back({tensor, buffer});
    locations_[value] = {buffer, 0};
  }
}

void Storage::place(const Sequence &sequence, uint64_t stepStart, uint64_t updateStart) {
  const Graph &graph = *sequence.graph;
  for (auto [bucket, buffers] : llvm::zip(buckets_, bucketBuffers_))
    if (bucket.trainable && buffers.gradient < 0 && !sequence.update.empty())
      buffers.gradient = add(bucket.name + "/gradients", plan::GRADIENT, bucket.elements * byteSize(bucket.dtype),
                             /*persistent=*/false, bucket.name);
  for (auto [i, bucket] : llvm::enumerate(buckets_))
    for (const BucketMember &member : bucket.members)
      if (const Value *value = graph.parameters[member.parameter].value)
        locations_[value] = {uint32_t(bucketBuffers_[i].parameter), member.offset * byteSize(bucket.dtype)};
  for (const Op &op : graph.ops())
    placeSource(op);

  for (auto &[name, value] : graph.outputs())
    if (!llvm::StringRef(name).starts_with(kGradientPrefix))
      outputRoots_.insert(sequence.layoutOf(value).root);

  auto eachItem = [&](auto visit) {
    for (auto [i, item] : llvm::enumerate(sequence.step))
      visit(item, stepStart + i);
    for (auto [i, item] : llvm::enumerate(sequence.update))
      visit(item, updateStart + i);
  };
  eachItem([&](const Item &item, uint64_t position) {
    if (item.kind == Item::Run)
      for (const Value *v : item.op->operands())
        if (v)
          lastUse_[sequence.layoutOf(v).root] = position;
    if (item.kind == Item::CopyGradient)
      lastUse_[sequence.layoutOf(item.value).root] = position;
  });
  eachItem([&](const Item &item, uint64_t position) { placeItem(sequence, item, position); });
}

void Storage::placeItem(const Sequence &sequence, const Item &item, uint64_t position) {
  if (item.kind != Item::Run)
    touch(bucketBuffers_[item.place.bucket].gradient, position);
  if (item.kind == Item::CopyGradient)
    touch(locationOf(sequence.layoutOf(item.value).root).buffer, position);
  if (item.kind != Item::Run)
    return;
  const Op &op = *item.op;
  for (const Value *v : op.operands())
    if (v)
      touch(locationOf(sequence.layoutOf(v).root).buffer, position);
  for (unsigned i = 0; i < op.numResults(); ++i)
    placeResult(sequence, op, i, position);
  if (int64_t bytes = op.def().workspace ? op.def().workspace(op) : 0) {
    uint32_t buffer = add(op.result()->name().str() + "/workspace", plan::WORKSPACE, bytes, /*persistent=*/false, op.layer);
    touch(buffer, position);
    workspaces_[&op] = buffer;
  }
}

uint32_t Storage::takeOver(uint32_t operand, const Value *value, uint64_t position) {
  plan::Buffer &old = *plan_.mutable_buffers(operand);
  uint32_t buffer = add(value->name(), old.kind(), value->type().numBytes(), /*persistent=*/false, plan_.strings(old.layer()));
  plan_.mutable_buffers(operand)->set_last(position); // what is read here is gone afterwards
  firstOwner_[buffer] = firstOwner_[operand];
  return buffer;
}

void Storage::placeResult(const Sequence &sequence, const Op &op, unsigned result, uint64_t position) {
  const Value *value = op.result(result);
  int operand = findOverwritten(sequence, op, result, position);
  overwritten_[{&op, result}] = operand;
  Location location;
  if (auto found = sequence.gradients.find(value); found != sequence.gradients.end()) {
    GradientPlace place = found->second;
    location = {uint32_t(bucketBuffers_[place.bucket].gradient), place.offset * byteSize(value->type().dtype)};
    if (operand >= 0 && sequence.gradients.count(sequence.layoutOf(op.operand(operand)).root) == 0)
      overwritten_[{&op, result}] = -1; // an accumulator lies in the bucket too; anything else stays where it is
  } else if (operand >= 0) {
    location = locationOf(sequence.layoutOf(op.operand(operand)).root);
    if (!plan_.buffers(location.buffer).persistent() && plan_.buffers(location.buffer).kind() == plan::ACTIVATION)
      location = {takeOver(location.buffer, value, position), 0};
  } else {
    // What the host reads after the program outlives it.
    bool output = outputRoots_.contains(value);
    location = {add(value->name(), output ? plan::SCALAR : plan::ACTIVATION, value->type().numBytes(), output, op.layer), 0};
  }
  touch(location.buffer, position);
  locations_[value] = location;
}

int Storage::findOverwritten(const Sequence &sequence, const Op &op, unsigned result, uint64_t position) const {
  const Value *value = op.result(result);
  for (const InPlace &pair : op.def().inPlace) {
    const Value *operand = op.operand(pair.operand);
    if (pair.result != int(result) || !operand)
      continue;
    if (op.def().inPlaceRequired)
      return pair.operand;
    Layout layout = sequence.layoutOf(operand);
    const Value *root = layout.root;
    const plan::Buffer &buffer = plan_.buffers(locationOf(root).buffer);
    bool whole = layout.offset == 0 && root->type().numBytes() == value->type().numBytes() &&
                 operand->type().dims == value->type().dims && layoutFits(layout, operand->type().dims, kContiguous);
    bool free = whole && !buffer.persistent() && buffer.kind() == plan::ACTIVATION && lastUse_.lookup(root) == position &&
                !outputRoots_.contains(value) && !sequence.gradients.count(root);
    // Nobody else may read these bytes in this command, and no other result may take them.
    for (unsigned i = 0; free && i < op.numOperands(); ++i)
      if (op.operand(i) && int(i) != pair.operand)
        free = locationOf(sequence.layoutOf(op.operand(i)).root).buffer != locationOf(root).buffer;
    for (unsigned r = 0; free && r < result; ++r)
      free = overwritten(op, r) != pair.operand;
    if (free)
      return pair.operand;
  }
  return -1;
}

int Storage::overwritten(const Op &op, unsigned result) const {
  auto found = overwritten_.find({&op, result});
  return found == overwritten_.end() ? -1 : found->second;
}

std::optional<uint32_t> Storage::workspaceOf(const Op &op) const {
  auto found = workspaces_.find(&op);
  return found == workspaces_.end() ? std::nullopt : std::optional(found->second);
}

void Storage::pack() {
  plan::Space &space = *plan_.add_spaces();
  space.set_kind(plan::Space::DEVICE);
  uint64_t end = 0, total = 0;
  for (const plan::Program &program : plan_.programs())
    total += program.commands_size();
  std::vector<PackItem> items;
  std::vector<unsigned> itemOf(plan_.buffers_size());
  for (auto [i, owner] : llvm::enumerate(firstOwner_)) {
    plan::Buffer &buffer = *plan_.mutable_buffers(i);
    if (buffer.last() == 0)
      buffer.set_first(0); // nobody touches it: only the host
    if (buffer.persistent()) {
      buffer.set_first(0);
      buffer.set_last(total);
      buffer.set_offset(end);
      end += (buffer.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    } else if (owner == i) {
      itemOf[i] = items.size();
      items.push_back({buffer.bytes(), buffer.first(), buffer.last()});
    } else { // lives on in the same place
      itemOf[i] = itemOf[owner];
      items[itemOf[i]].last = std::max(items[itemOf[i]].last, buffer.last());
    }
  }
  PackResult solution = shardc::pack(items, kAlignment);
  for (auto [i, buffer] : llvm::enumerate(*plan_.mutable_buffers()))
    if (!buffer.persistent())
      buffer.set_offset(end + solution.offsets[itemOf[i]]);
  space.set_bytes(end + solution.height);
  space.set_lower_bound(end + solution.lowerBound);
}

} // namespace shardc::emit
