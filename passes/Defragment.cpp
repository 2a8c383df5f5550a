// SPDX-License-Identifier: Apache-2.0
#include "passes/Defragment.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/Machine.h"
#include "passes/emit/Arena.h"
#include "passes/memory/Moves.h"

namespace shardc {
namespace {

/// Buffer `from` is copied to `to` before the command at `position`.
struct Move {
  uint64_t position;
  uint32_t from, to;
};

/// What the commands do with the buffers; positions count through all programs.
class Uses {
public:
  explicit Uses(const plan::Plan &plan) : plan_(plan), lastWrite_(plan.buffers_size(), 0), pinned_(plan.buffers_size(), false) {
    for (auto [b, buffer] : llvm::enumerate(plan.buffers()))
      pinned_[b] = buffer.kind() != plan::ACTIVATION || buffer.persistent();
    for (const plan::Output &output : plan.outputs())
      pinned_[output.ref().buffer()] = true;
    for (const plan::Program &program : plan.programs()) {
      programEnds_.push_back(commands_.size() + program.commands_size());
      for (const plan::Command &c : program.commands())
        add(c);
    }
  }

  /// Ranges of positions before which the buffer may be copied away: all of it is written, reads follow, in the same program.
  void gapsOf(uint32_t b, llvm::SmallVectorImpl<std::pair<uint64_t, uint64_t>> &gaps) const {
    const plan::Buffer &buffer = plan_.buffers(b);
    if (pinned_[b] || buffer.first() == buffer.last() || buffer.last() > *llvm::upper_bound(programEnds_, buffer.first()))
      return;
    // The command at `last` reads the buffer, too, if it takes its place over.
    uint64_t last = overwriter_.lookup(b) ? buffer.last() : buffer.last() - 1;
    for (uint64_t p = lastWrite_[b] + 1; p <= last; ++p) {
      if (commands_[p]->stream() != 0) // it may start as soon as the command before is done: without waiting for the copy
        continue;
      if (!gaps.empty() && gaps.back().second + 1 == p)
        gaps.back().second = p;
      else
        gaps.push_back({p, p});
    }
  }

  bool isTakenOver(uint32_t b) const { return overwriter_.lookup(b); }

private:
  void add(const plan::Command &c) {
    for (const plan::Ref &ref : c.inputs())
      if (!ref.absent() && c.communicator())
        pinned_[ref.buffer()] = true;
    for (auto [i, ref] : llvm::enumerate(c.outputs())) {
      lastWrite_[ref.buffer()] = commands_.size();
      if (c.communicator())
        pinned_[ref.buffer()] = true;
      if (int(i) < c.in_place_size() && c.in_place(i) && c.inputs(c.in_place(i) - 1).buffer() != ref.buffer())
        overwriter_[c.inputs(c.in_place(i) - 1).buffer()] = true;
    }
    commands_.push_back(&c);
  }

  const plan::Plan &plan_;
  std::vector<const plan::Command *> commands_;
  std::vector<uint64_t> programEnds_;
  std::vector<uint64_t> lastWrite_; ///< by buffer
  std::vector<bool> pinned_;
  llvm::DenseMap<uint32_t, bool> overwriter_; ///< buffers whose place another one takes over
};

std::vector<MovableItem> movableItems(const plan::Plan &plan, const emit::Arena &arena, const Uses &uses) {
  std::vector<MovableItem> items;
  for (const PackItem &item : arena.items)
    items.push_back({item});
  std::vector<uint32_t> buffers; // those of an item in the order of their lives
  for (auto [b, item] : llvm::enumerate(arena.itemOf))
    if (item >= 0 && plan.buffers(b).bytes())
      buffers.push_back(b);
  llvm::stable_sort(buffers, [&](uint32_t a, uint32_t b) { return plan.buffers(a).first() < plan.buffers(b).first(); });
  for (uint32_t b : buffers)
    uses.gapsOf(b, items[arena.itemOf[b]].gaps);
  return items;
}

/// Writes moves into a plan.
class Mover {
public:
  Mover(plan::Plan &plan, const Uses &uses, const Machine &machine)
      : plan_(plan), uses_(uses), machine_(machine), later_(plan.buffers_size()), offsets_(plan.buffers_size(), 0) {}

  void run(const emit::Arena &arena, const MovePacking &packing) {
    for (auto [b, item] : llvm::enumerate(arena.itemOf))
      if (item >= 0)
        cut(b, packing.pieces[item]);
    llvm::stable_sort(moves_, [](const Move &a, const Move &b) { return a.position < b.position; });
    shiftLives();
    insertCommands();
    emit::layOut(plan_, offsets_, "defragment");
  }

private:
  /// Gives the buffer its offset, and for each piece that begins during its life another buffer.
  void cut(uint32_t b, llvm::ArrayRef<Piece> pieces) {
    const uint64_t first = plan_.buffers(b).first(), last = plan_.buffers(b).last() + uses_.isTakenOver(b);
    uint32_t current = b;
    for (const Piece &piece : pieces) {
      if (piece.from <= first || &piece == pieces.begin()) {
        offsets_[b] = piece.offset;
      } else if (piece.from < last) {
        plan::Buffer copy = plan_.buffers(b); // which its table may not own any more when it grows
        *plan_.add_buffers() = std::move(copy);
        offsets_.push_back(piece.offset);
        uint32_t next = plan_.buffers_size() - 1;
        moves_.push_back({piece.from, current, next});
        later_[b].push_back({piece.from, next});
        current = next;
      }
    }
  }

  /// Where the command that was at `position` is now.
  uint64_t shifted(uint64_t position) const {
    auto behind = llvm::upper_bound(moves_, position, [](uint64_t p, const Move &move) { return p < move.position; });
    return position + (behind - moves_.begin());
  }

  void shiftLives() {
    for (auto [b, later] : llvm::enumerate(later_)) {
      plan::Buffer &buffer = *plan_.mutable_buffers(b);
      if (buffer.first() == buffer.last()) // nobody touches it
        continue;
      uint64_t first = shifted(buffer.first()), last = uses_.isTakenOver(b) ? shifted(buffer.last()) : shifted(buffer.last() - 1) + 1;
      buffer.set_first(buffer.persistent() ? 0 : first);
      buffer.set_last(last);
      for (auto [position, next] : later)
        plan_.mutable_buffers(next)->set_last(last);
    }
    for (auto [i, move] : llvm::enumerate(moves_)) {
      plan_.mutable_buffers(move.from)->set_last(move.position + i + 1);
      plan_.mutable_buffers(move.to)->set_first(move.position + i);
    }
  }

  void insertCommands() {
    uint32_t place = plan_.strings_size();
    plan_.add_strings("defragment");
    uint64_t position = 0;
    auto move = moves_.begin();
    for (plan::Program &program : *plan_.mutable_programs()) {
      google::protobuf::RepeatedPtrField<plan::Command> commands;
      commands.Swap(program.mutable_commands());
      for (plan::Command &command : commands) {
        for (; move != moves_.end() && move->position == position; ++move)
          writeMove(*move, command, place, *program.add_commands());
        for (auto *refs : {command.mutable_inputs(), command.mutable_outputs()})
          for (plan::Ref &ref : *refs)
            rename(ref, position);
        *program.add_commands() = std::move(command);
        ++position;
      }
    }
  }

  void rename(plan::Ref &ref, uint64_t position) const {
    if (ref.absent() || ref.buffer() >= later_.size())
      return;
    for (auto [from, next] : llvm::reverse(later_[ref.buffer()]))
      if (from <= position)
        return ref.set_buffer(next);
  }

  void writeMove(const Move &move, const plan::Command &before, uint32_t place, plan::Command &command) const {
    const uint64_t bytes = plan_.buffers(move.from).bytes();
    command.set_kernel("copy");
    for (auto [ref, buffer] : {std::pair(command.add_inputs(), move.from), std::pair(command.add_outputs(), move.to)}) {
      ref->set_buffer(buffer);
      ref->set_dtype(uint32_t(DType::U8));
      ref->add_dims(bytes);
    }
    command.set_place(place);
    command.set_layer(before.layer());
    command.set_phase(before.phase());
    command.set_moved_bytes(2.0 * double(bytes));
    command.set_predicted_us(machine_.microseconds({0, command.moved_bytes()}, DType::U8, Phase(before.phase())));
  }

  plan::Plan &plan_;
  const Uses &uses_;
  const Machine &machine_;
  std::vector<Move> moves_;
  std::vector<llvm::SmallVector<std::pair<uint64_t, uint32_t>, 0>> later_; ///< by buffer: from which position on it is which other
  std::vector<uint64_t> offsets_;
};

} // namespace

void defragment(plan::Plan &plan, uint64_t capacity, const Machine &machine) {
  const plan::Space &space = plan.spaces(0);
  if (space.bytes() <= capacity || space.lower_bound() > capacity)
    return;
  emit::Arena arena = emit::arenaOf(plan);
  uint64_t persistent = emit::persistentBytes(plan);
  PackResult packed; // as the plan stands
  packed.offsets.resize(arena.items.size());
  for (auto [buffer, item] : llvm::zip(plan.buffers(), arena.itemOf))
    if (item >= 0)
      packed.offsets[item] = buffer.offset() - persistent;
  Uses uses(plan);
  MovePacking packing = packWithMoves(movableItems(plan, arena, uses), packed, capacity - persistent, kAlignment);
  if (packing.fits)
    Mover(plan, uses, machine).run(arena, packing);
}

} // namespace shardc
