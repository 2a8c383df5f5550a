// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Arena.h"
#include "ir/plan/Peak.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::emit {
namespace {

/// Regions of what persists, in the order of addresses.
constexpr std::pair<plan::BufferKind, llvm::StringLiteral> kKinds[] = {
    {plan::PARAMETER, "parameters"}, {plan::OPTIMIZER_STATE, "optimizer state"}, {plan::GRADIENT, "gradients"}};
constexpr llvm::StringLiteral kOthers = "inputs, constants, scalars", kStep = "step";

unsigned regionOf(const plan::Buffer &buffer) {
  for (auto [i, kind] : llvm::enumerate(kKinds))
    if (buffer.kind() == kind.first)
      return i;
  return std::size(kKinds);
}

void addRegion(plan::Space &space, llvm::StringRef name, uint64_t offset, uint64_t bytes, uint64_t bound) {
  if (bytes == 0)
    return;
  plan::Region &region = *space.add_regions();
  region.set_name(name.str());
  region.set_offset(offset);
  region.set_bytes(bytes);
  region.set_lower_bound(bound);
}

/// By buffer: the first of those that lie in one place.
std::vector<uint32_t> firstOwners(const plan::Plan &plan) {
  std::vector<uint32_t> owners(plan.buffers_size());
  for (uint32_t b = 0; b < owners.size(); ++b)
    owners[b] = b;
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      for (int i = 0; i < c.in_place_size(); ++i)
        if (c.in_place(i)) // a command that takes a buffer over comes behind the one that wrote it
          if (uint32_t from = c.inputs(c.in_place(i) - 1).buffer(), to = c.outputs(i).buffer(); from != to)
            owners[to] = owners[from];
  return owners;
}

} // namespace

Arena arenaOf(const plan::Plan &plan) {
  Arena arena;
  arena.itemOf.assign(plan.buffers_size(), -1);
  std::vector<uint32_t> owners = firstOwners(plan);
  for (auto [b, buffer] : llvm::enumerate(plan.buffers())) {
    if (buffer.persistent())
      continue;
    int32_t &item = arena.itemOf[owners[b]];
    if (item < 0) {
      item = arena.items.size();
      arena.items.push_back({buffer.bytes(), buffer.first(), buffer.last()});
    }
    PackItem &all = arena.items[item];
    all = {std::max(all.bytes, buffer.bytes()), std::min(all.first, buffer.first()), std::max(all.last, buffer.last())};
    arena.itemOf[b] = item;
  }
  return arena;
}

uint64_t persistentBytes(const plan::Plan &plan) {
  uint64_t bytes = 0;
  for (const plan::Buffer &buffer : plan.buffers())
    bytes += buffer.persistent() ? alignedBytes(buffer) : 0;
  return bytes;
}

uint64_t tightBytes(uint64_t bound) { return bound + std::max(bound / 1000, PackLimits().slack); }

uint64_t looseBytes(const plan::Plan &plan) {
  const plan::Space &space = plan.spaces(0);
  return space.bytes() > tightBytes(space.lower_bound()) ? space.bytes() - space.lower_bound() : 0;
}

void packSpace(plan::Plan &plan, uint64_t capacity) {
  Arena arena = arenaOf(plan);
  const uint64_t persistent = persistentBytes(plan), bound = findPeak(plan, 0).bytes;
  PackLimits limits;
  limits.slack = tightBytes(bound) - bound;
  if (capacity && capacity < bound) // only what is said of it
    limits.work /= 8;
  PackResult packed = pack(arena.items, kAlignment, limits);
  // What is good enough for a plan may be too much for its budget.
  if (capacity >= bound && persistent + packed.height > capacity) {
    limits.capacity = capacity - persistent;
    limits.work /= 2;
    if (PackResult tighter = pack(arena.items, kAlignment, limits); tighter.height < packed.height)
      packed = std::move(tighter);
  }
  std::vector<uint64_t> offsets(plan.buffers_size(), 0);
  for (auto [offset, item] : llvm::zip(offsets, arena.itemOf))
    if (item >= 0)
      offset = packed.offsets[item];
  layOut(plan, offsets, packed.method);
}

void layOut(plan::Plan &plan, llvm::ArrayRef<uint64_t> offsets, llvm::StringRef method) {
  plan.clear_spaces();
  plan::Space &space = *plan.add_spaces();
  space.set_kind(plan::Space::DEVICE);
  space.set_method(method.str());
  uint64_t end = 0, top = 0;
  for (unsigned region = 0; region <= std::size(kKinds); ++region) {
    uint64_t begin = end;
    for (plan::Buffer &buffer : *plan.mutable_buffers())
      if (buffer.persistent() && regionOf(buffer) == region) {
        buffer.set_offset(end);
        end += alignedBytes(buffer);
      }
    addRegion(space, region < std::size(kKinds) ? kKinds[region].second : kOthers, begin, end - begin, end - begin);
  }
  for (auto [buffer, offset] : llvm::zip(*plan.mutable_buffers(), offsets))
    if (!buffer.persistent()) {
      buffer.set_offset(end + offset);
      top = std::max(top, offset + alignedBytes(buffer));
    }
  space.set_bytes(end + top);
  space.set_lower_bound(findPeak(plan, 0).bytes);
  addRegion(space, kStep, end, top, space.lower_bound() - end);
}

} // namespace shardc::emit
