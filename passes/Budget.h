// SPDX-License-Identifier: Apache-2.0
// Does it fit, and what would make it fit: searches over batches, stages, ranks and micro-steps. Nothing is
// estimated: what is reported was compiled, on all cores; how many there are changes no result.
#pragma once

#include "ir/plan/Plan.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

namespace shardc {

/// What a search may change about a compilation.
struct Setting {
  int64_t batch = 1; ///< rows per rank and micro-step
  unsigned ranks = 1, zero = 0, accumulate = 1;
  /// Rows of an update.
  double samples() const { return double(batch) * ranks * accumulate; }
  bool operator<(const Setting &o) const {
    return std::tie(batch, ranks, zero, accumulate) < std::tie(o.batch, o.ranks, o.zero, o.accumulate);
  }
};

/// What the plan of a setting needs.
struct Trial {
  Setting setting;
  uint64_t bytes = 0; ///< that a rank takes (rankBytes)
  double stepMs = 0;  ///< predicted, of an update
  double msPerSample() const { return stepMs / setting.samples(); }
};

/// Compiles settings and compares them with a budget. Any number of threads may ask at once.
class Trials {
public:
  using Compile = llvm::function_ref<llvm::Expected<plan::Plan>(const Setting &)>;
  /// `budget`: bytes that a rank may take. `compile` outlives this, may run several times at once, and gives
  /// the same plan for the same setting.
  Trials(Compile compile, uint64_t budget) : compile_(compile), budget_(budget) {}

  /// Compiles settings that will be asked for, at the same time.
  void prepare(llvm::ArrayRef<Setting> settings);
  /// The plan of a setting that is there already.
  void add(const Setting &setting, const plan::Plan &plan);
  llvm::Expected<Trial> at(const Setting &setting);
  /// nullopt: it does not fit, or cannot be compiled.
  std::optional<Trial> fitting(const Setting &setting);
  bool fits(const Trial &trial) const { return trial.bytes <= budget_; }
  uint64_t budget() const { return budget_; }

private:
  bool cannotBeCompiled(const Setting &setting);

  Compile compile_;
  uint64_t budget_;
  std::mutex mutex_; ///< of `known_`
  std::map<Setting, std::optional<Trial>> known_; ///< nullopt: cannot be compiled
};

/// The end of what fits: `most` does, and one row more, `more`, does not (nullopt: it cannot be compiled, or
/// `most` is where the search ends).
struct LargestBatch {
  std::optional<Trial> most; ///< nullopt: not even a batch of 1 fits
  std::optional<Trial> more;
  std::string refused; ///< why one row more cannot be compiled
};
/// Over the batches of `setting`, whose own is where the search begins. What is too large to be compiled does
/// not fit; an error of batch 1 is returned. Memory is nearly linear in the batch, so that this takes some
/// eight compilations; dips of more than three rows behind the first batch that does not fit are not looked
/// for. `smaller`: than that of `setting`, which does not fit.
llvm::Expected<LargestBatch> largestBatch(Trials &trials, const Setting &setting, bool smaller = false);

/// The changes that make it fit, each the smallest of its kind, by ranks and then by time for a sample: a
/// higher stage; the same rows of an update in more micro-steps; fewer rows; twice, four or eight times the
/// ranks. Empty: none of these does. Requires: `now` does not fit.
std::vector<Trial> changesThatFit(Trials &trials, const Setting &now);

} // namespace shardc
