// SPDX-License-Identifier: Apache-2.0
// Recounts what every operand says about which content of its memory it means (Ref.version).
#include "ir/base/Error.h"
#include "ir/plan/Check.h"

using namespace llvm;

namespace shardc::check {
namespace {

class Versions {
public:
  explicit Versions(const plan::Plan &plan) : plan_(plan), writes_(plan.buffers_size()) {}

  Error run() {
    for (int p = 0; p < plan_.programs_size(); ++p) {
      const plan::Program &program = plan_.programs(p);
      if (program.name() == "eval")
        for (auto &list : writes_)
          list.clear();
      for (int i = 0; i < program.commands_size(); ++i)
        if (Error error =
                at(checkCommand(program.commands(i)), [&] { return describe(plan_, p, i); }))
          return error;
      for (const plan::Output &output : plan_.outputs())
        if (output.program() == program.name())
          if (Error error = at(check(output.ref()), [&] { return "output " + output.name(); }))
            return error;
    }
    return Error::success();
  }

private:
  struct Write {
    Range bytes;
    uint64_t command; ///< numbered through
  };

  Error checkCommand(const plan::Command &c) {
    for (int k = 0; k < c.inputs_size(); ++k)
      if (Error error = at(check(c.inputs(k)), [&] { return "input " + std::to_string(k); }))
        return error;
    for (int k = 0; k < c.outputs_size(); ++k)
      if (Error error = at(check(c.outputs(k)), [&] { return "output " + std::to_string(k); }))
        return error;
    if (c.has_workspace())
      if (Error error = at(check(c.workspace()), [] { return std::string("workspace"); }))
        return error;
    for (const plan::Ref &ref : c.outputs())
      add(ref);
    if (c.has_workspace())
      add(c.workspace());
    ++commands_;
    return Error::success();
  }

  Error check(const plan::Ref &ref) const {
    if (ref.absent())
      return Error::success();
    Range bytes = tiledBytes(plan_, ref);
    uint32_t count = 0;
    uint64_t last = UINT64_MAX;
    for (const Write &write : writes_[ref.buffer()])
      if (write.command != last && write.bytes.overlaps(bytes)) {
        last = write.command;
        ++count;
      }
    if (count == ref.version())
      return Error::success();
    return userError("means " + describeBuffer(plan_, ref.buffer()) + " after " +
                     Twine(ref.version()) + " commands have written it, but " + Twine(count) +
                     " have: something was left out, doubled or moved");
  }

  void add(const plan::Ref &ref) {
    if (!ref.absent() && !touchedBytes(ref)->empty())
      writes_[ref.buffer()].push_back({tiledBytes(plan_, ref), commands_});
  }

  const plan::Plan &plan_;
  std::vector<std::vector<Write>> writes_; ///< by buffer, in order
  uint64_t commands_ = 0;
};

} // namespace

Error checkVersions(const plan::Plan &plan) { return Versions(plan).run(); }

} // namespace shardc::check
