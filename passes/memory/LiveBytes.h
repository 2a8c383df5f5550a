// SPDX-License-Identifier: Apache-2.0
// How many bytes live while the ops of a program run one by one, in any order that their operands permit,
// were it emitted so. What persists does not count. The rules are those of emission (emit/Storage): results
// born in packed arrays, parts of concats, results over operands that die, workspaces. A test compares it
// with plans.
#pragma once

#include "passes/Options.h"
#include "passes/Order.h"
#include "passes/emit/Sequence.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

class LiveBytes {
public:
  LiveBytes(const Graph &graph, const CompileOptions &options);

  struct Live {
    uint64_t during = 0, after = 0;
    int64_t grows =
        0; ///< what it makes less what dies; of a packed array where it is the first, its own part alone
  };
  /// Were `op` the next to run. Requires: it has not run yet, what makes its operands has. Sources and views:
  /// nothing changes.
  Live next(const Op &op) const;
  void run(const Op &op);
  uint64_t now() const { return now_; }
  /// Back to before the first op.
  void restart();

private:
  /// A range of memory: of one value, or of those that lie in the same place in every order.
  struct Memory {
    uint64_t bytes = 0;    ///< aligned
    unsigned accesses = 0; ///< ops
    bool persistent = false;
    bool before = false, behind = false; ///< lives before the program, lives on behind it
    bool activation = true;              ///< results may take it over
  };
  /// The result lies over the operand if that dies here.
  struct Pair {
    unsigned operand, result; ///< memories
  };
  struct Access {
    unsigned memory;
    uint64_t bytes; ///< aligned, of the operand or result
  };
  struct Accesses {
    llvm::SmallVector<Access, 6> memories; ///< each once
    llvm::SmallVector<Pair, 1> pairs;
    uint64_t workspace = 0;
  };

  unsigned add(uint64_t bytes);
  unsigned memory(const Value *root);
  void join(const Value *root, unsigned into);
  unsigned find(unsigned memory) const;
  unsigned stateMemory(llvm::StringRef name, uint64_t bytes);
  void joinStates();
  void joinResults(const Op &op);
  void noteRun(const Op &op);
  void notePairs(const Op &op, unsigned result);
  void note(const Op &op, const Value *value);

  const CompileOptions &options_;
  const emit::Sequence sequence_;
  std::vector<Memory> memories_;
  std::vector<unsigned> joined_; ///< by memory: the one that it is part of, itself if none
  llvm::DenseMap<const Value *, unsigned> ofRoot_;
  llvm::StringMap<unsigned> states_;
  llvm::DenseMap<const Op *, Accesses> accesses_;
  std::vector<unsigned> left_; ///< by memory: accesses to come
  std::vector<bool> lives_;    ///< by memory
  uint64_t now_ = 0;
};

} // namespace shardc
