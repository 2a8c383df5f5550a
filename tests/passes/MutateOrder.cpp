// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/Mutations.h"
#include "tests/passes/Refit.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace shardc {
namespace {

using Commands = google::protobuf::RepeatedPtrField<plan::Command>;
using Events = google::protobuf::RepeatedField<uint32_t>;

std::string nameOf(const plan::Program &program, int i) {
  return program.name() + " " + std::to_string(i) + " " + program.commands(i).kernel();
}

void erase(Events &events, uint32_t event) {
  auto end = std::remove(events.begin(), events.end(), event);
  events.erase(end, events.end());
}

/// The next command on the same stream, or the one before; -1 if there is none.
int neighbour(const Commands &list, int i, int step) {
  for (int j = i + step; j >= 0 && j < list.size(); j += step)
    if (list[j].stream() == list[i].stream())
      return j;
  return -1;
}

void moveCommand(Commands &list, int from, int to) {
  for (; from < to; ++from)
    list.SwapElements(from, from + 1);
  for (; from > to; --from)
    list.SwapElements(from, from - 1);
}

/// What it signals and waits for goes to its neighbours, so that only its work is missing.
void dropCommand(Commands &list, int i) {
  if (int before = neighbour(list, i, -1), after = neighbour(list, i, 1); before >= 0 || after >= 0) {
    list[before >= 0 ? before : after].mutable_signals()->MergeFrom(list[i].signals());
    list[after >= 0 ? after : before].mutable_waits()->MergeFrom(list[i].waits());
  }
  list.DeleteSubrange(i, 1);
}

/// Last command before `i` that writes a buffer that `i` reads; -1 if there is none.
int lastWriter(const Commands &list, int i) {
  for (int j = i - 1; j >= 0; --j)
    for (const plan::Ref &out : list[j].outputs())
      if (any_of(list[i].inputs(), [&](const plan::Ref &in) { return !in.absent() && in.buffer() == out.buffer(); }))
        return j;
  return -1;
}

class OrderDamage {
public:
  OrderDamage(const plan::Plan &plan, VisitDamage visit) : plan_(plan), visit_(visit) {}

  void run() {
    for (p_ = 0; p_ < plan_.programs_size(); ++p_)
      for (i_ = 0; i_ < size(); ++i_) {
        damageEvents();
        damageOrder();
        damageStreams();
      }
  }

private:
  int size() const { return plan_.programs(p_).commands_size(); }
  const plan::Command &command() const { return plan_.programs(p_).commands(i_); }

  void visit(StringRef kind, function_ref<void(Commands &)> apply) {
    visit_(
        kind, [&] { return nameOf(plan_.programs(p_), i_); },
        [&](plan::Plan &plan) { apply(*plan.mutable_programs(p_)->mutable_commands()); });
  }
  /// As it stands, and with lifetimes and places that fit it.
  void visitMoved(const std::string &kind, function_ref<void(Commands &)> apply) {
    visit(kind, apply);
    visit_(
        kind + ", refitted", [&] { return nameOf(plan_.programs(p_), i_); },
        [&](plan::Plan &plan) {
          apply(*plan.mutable_programs(p_)->mutable_commands());
          refitLifetimes(plan);
          spreadBuffers(plan);
        });
  }

  void damageEvents() {
    int i = i_;
    for (uint32_t event : command().waits()) {
      visit("drop a wait", [&](Commands &list) { erase(*list[i].mutable_waits(), event); });
      if (int next = neighbour(plan_.programs(p_).commands(), i, 1); next >= 0)
        visit("wait one command late", [&](Commands &list) {
          erase(*list[i].mutable_waits(), event);
          list[next].add_waits(event);
        });
      for (uint32_t other : {event - 1, event + 1})
        if (other < plan_.events())
          visit("wait for another event", [&](Commands &list) {
            erase(*list[i].mutable_waits(), event);
            list[i].add_waits(other);
          });
    }
    for (uint32_t event : command().signals()) {
      visit("drop a signal", [&](Commands &list) { erase(*list[i].mutable_signals(), event); });
      visit("drop a signal and its waits", [&](Commands &list) {
        for (plan::Command &c : list) {
          erase(*c.mutable_signals(), event);
          erase(*c.mutable_waits(), event);
        }
      });
      if (int before = neighbour(plan_.programs(p_).commands(), i, -1); before >= 0)
        visit("signal one command early", [&](Commands &list) {
          erase(*list[i].mutable_signals(), event);
          list[before].add_signals(event);
        });
    }
  }

  void damageOrder() {
    int i = i_;
    for (int distance : {1, 2, 5})
      if (i + distance < size())
        visitMoved("swap two commands", [&](Commands &list) { list.SwapElements(i, i + distance); });
    if (int writer = lastWriter(plan_.programs(p_).commands(), i); writer >= 0) {
      visitMoved("move a read before its write", [&](Commands &list) { moveCommand(list, i, writer); });
      visitMoved("move a write after its read", [&](Commands &list) { moveCommand(list, writer, i); });
    }
    visitMoved("drop a command", [&](Commands &list) { dropCommand(list, i); });
    visitMoved("do a command twice", [&](Commands &list) {
      plan::Command twin = list[i];
      twin.clear_signals();
      *list.Add() = twin;
      moveCommand(list, list.size() - 1, i);
    });
  }

  void damageStreams() {
    int i = i_;
    for (uint32_t stream : {0u, 1u, 2u, 3u})
      if (stream != command().stream())
        visit("move to another stream", [&](Commands &list) { list[i].set_stream(stream); });
  }

  const plan::Plan &plan_;
  VisitDamage visit_;
  int p_ = 0, i_ = 0;
};

} // namespace

void eachOrderDamage(const plan::Plan &plan, VisitDamage visit) { OrderDamage(plan, visit).run(); }

} // namespace shardc
