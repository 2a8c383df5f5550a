// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Memory.h"
#include "ir/base/Error.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/Support/MathExtras.h"

namespace shardc::host {
namespace {

/// Offsets of buffers and sizes of spaces, in bytes.
struct Layout {
  std::vector<uint64_t> offsets, spaces;
};

llvm::Error checkBuffer(const plan::Plan &plan, const plan::Buffer &buffer) {
  if (buffer.space() >= uint32_t(plan.spaces_size()))
    return userError(llvm::Twine("buffer ") + buffer.name() + ": space: got " + llvm::Twine(buffer.space()) +
                     ", wanted below " + llvm::Twine(plan.spaces_size()));
  uint64_t size = plan.spaces(buffer.space()).bytes();
  if (buffer.offset() > size || buffer.bytes() > size - buffer.offset())
    return userError(llvm::Twine("buffer ") + buffer.name() + ": ends beyond its space of " + llvm::Twine(size) +
                     " bytes");
  if (buffer.offset() % sizeof(double))
    return userError(llvm::Twine("buffer ") + buffer.name() + ": offset: got " + llvm::Twine(buffer.offset()) +
                     ", wanted a multiple of 8");
  return llvm::Error::success();
}

Layout asPlanned(const plan::Plan &plan) {
  Layout layout;
  for (const plan::Buffer &buffer : plan.buffers())
    layout.offsets.push_back(buffer.offset());
  for (const plan::Space &space : plan.spaces())
    layout.spaces.push_back(space.bytes());
  return layout;
}

/// Which buffers must share memory: a class for each buffer.
llvm::IntEqClasses tiedBuffers(const plan::Plan &plan) {
  llvm::IntEqClasses classes(plan.buffers_size());
  auto tie = [&](const plan::Ref &a, const plan::Ref &b) {
    uint32_t n = plan.buffers_size();
    if (!a.absent() && !b.absent() && a.buffer() < n && b.buffer() < n &&
        plan.buffers(a.buffer()).space() == plan.buffers(b.buffer()).space())
      classes.join(a.buffer(), b.buffer());
  };
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &command : program.commands())
      for (int i = 0; i < std::min(command.in_place_size(), command.outputs_size()); ++i)
        if (uint32_t operand = command.in_place(i); operand && operand <= uint32_t(command.inputs_size()))
          tie(command.outputs(i), command.inputs(operand - 1));
  classes.compress();
  return classes;
}

/// Groups of tied buffers end to end, with a gap between them.
llvm::Expected<Layout> apart(const plan::Plan &plan, const llvm::IntEqClasses &classes) {
  struct Group {
    uint64_t low = UINT64_MAX, high = 0, start = 0;
    bool placed = false;
  };
  std::vector<Group> groups(classes.getNumClasses());
  for (int i = 0; i < plan.buffers_size(); ++i) {
    Group &group = groups[classes[i]];
    group.low = std::min(group.low, plan.buffers(i).offset() / kAlignment * kAlignment);
    group.high = std::max(group.high, plan.buffers(i).offset() + plan.buffers(i).bytes());
  }
  Layout layout;
  layout.spaces.resize(plan.spaces_size());
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const plan::Buffer &buffer = plan.buffers(i);
    Group &group = groups[classes[i]];
    uint64_t &end = layout.spaces[buffer.space()];
    if (!group.placed) {
      group.placed = true;
      group.start = end;
      constexpr uint64_t kMost = uint64_t(1) << 62;
      uint64_t bytes = group.high - group.low;
      if (bytes > kMost || end > kMost)
        return userError("disjoint memory: the buffers of space " + llvm::Twine(buffer.space()) + " are too large");
      end += llvm::alignTo(bytes, kAlignment) + kAlignment;
    }
    layout.offsets.push_back(group.start + buffer.offset() - group.low);
  }
  return layout;
}

/// Buffers of groups that live within one program only, by program.
std::vector<std::vector<uint32_t>> passingBuffers(const plan::Plan &plan, const llvm::IntEqClasses &classes) {
  std::vector<std::vector<uint32_t>> passing(plan.programs_size());
  uint64_t begin = 0;
  for (int p = 0; p < plan.programs_size(); ++p) {
    uint64_t end = begin + plan.programs(p).commands_size();
    auto isInside = [&](const plan::Buffer &buffer) {
      return !buffer.persistent() && buffer.first() >= begin && buffer.last() <= end;
    };
    std::vector<bool> stays(classes.getNumClasses());
    for (int i = 0; i < plan.buffers_size(); ++i)
      if (!isInside(plan.buffers(i)))
        stays[classes[i]] = true;
    for (int i = 0; i < plan.buffers_size(); ++i)
      if (!stays[classes[i]])
        passing[p].push_back(i);
    begin = end;
  }
  return passing;
}

} // namespace

llvm::Expected<Memory> Memory::create(const plan::Plan &plan, bool disjoint) {
  for (int i = 0; i < plan.spaces_size(); ++i)
    if (plan.spaces(i).kind() == plan::Space::FILE)
      return userError("space " + llvm::Twine(i) + ": the host runtime has no memory of kind file");
  for (const plan::Buffer &buffer : plan.buffers())
    if (llvm::Error e = checkBuffer(plan, buffer))
      return e;
  llvm::IntEqClasses classes(0);
  if (disjoint)
    classes = tiedBuffers(plan);
  llvm::Expected<Layout> layout = disjoint ? apart(plan, classes) : asPlanned(plan);
  if (!layout)
    return layout.takeError();
  Memory memory;
  for (size_t i = 0; i < layout->spaces.size(); ++i) {
    auto arena = Arena::create(layout->spaces[i], "space " + std::to_string(i));
    if (!arena)
      return arena.takeError();
    memory.arenas_.push_back(std::move(*arena));
  }
  for (int i = 0; i < plan.buffers_size(); ++i)
    memory.buffers_.push_back(memory.arenas_[plan.buffers(i).space()].data() + layout->offsets[i]);
  memory.forgotten_.resize(plan.programs_size());
  if (disjoint)
    for (auto [parts, buffers] : llvm::zip(memory.forgotten_, passingBuffers(plan, classes)))
      for (uint32_t i : buffers)
        parts.push_back({memory.buffers_[i], size_t(plan.buffers(i).bytes())});
  return memory;
}

} // namespace shardc::host
