// SPDX-License-Identifier: Apache-2.0
// Writes the commands of one program.
#pragma once

#include "passes/emit/Storage.h"

namespace shardc {
struct Machine;
}

namespace shardc::emit {

class CommandWriter {
public:
  CommandWriter(const Sequence &sequence, Storage &storage, const Machine &machine, plan::Plan &plan)
      : sequence_(sequence), storage_(storage), machine_(machine), plan_(plan) {}
  /// Fills the program: commands, then their streams and events.
  void write(plan::Program &program);
  /// How a value lies in memory.
  plan::Ref ref(const Value *value) const;

private:
  /// Are these elements, where a bucket or a parameter is `root`, the place of a parameter or of adjacent ones?
  bool isPlace(const Value *root, int64_t offset, int64_t elements) const;
  void writeOp(const Op &op, plan::Command &command);
  void writeFill(const Item &item, plan::Command &command);
  void writeCopy(const Item &item, plan::Command &command);
  plan::Ref packedRef(PackedPlace place, llvm::ArrayRef<int64_t> dims) const;
  void synchronise(plan::Program &program);

  const Sequence &sequence_;
  Storage &storage_;
  const Machine &machine_;
  plan::Plan &plan_; ///< whose events are numbered through
};

} // namespace shardc::emit
