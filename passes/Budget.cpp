// SPDX-License-Identifier: Apache-2.0
#include "passes/Budget.h"
#include "ir/plan/Report.h"
#include "llvm/ADT/FunctionExtras.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Parallel.h"

namespace shardc {
namespace {

constexpr int64_t kMostRows = int64_t(1) << 24; ///< of a rank; what fits with more has no use for a budget
constexpr int64_t kBeyond = 3;                  ///< rows behind one that does not fit that are looked at
constexpr unsigned kMostRanks = 1 << 16;
constexpr int64_t kMostMicroSteps = 1 << 16; ///< of an update; who needs more needs another machine

Setting withBatch(Setting setting, int64_t batch) {
  setting.batch = batch;
  return setting;
}

/// Where the line through two trials meets the budget, as a batch between `least` and `most`.
int64_t crossing(const Trial &a, const Trial &b, uint64_t budget, int64_t least, int64_t most) {
  double rows = double(b.setting.batch - a.setting.batch), bytes = double(b.bytes) - double(a.bytes);
  double guess = double(a.setting.batch) + (double(budget) - double(a.bytes)) * rows / bytes;
  return bytes > 0 && guess < double(most) ? std::clamp(int64_t(guess), least, most) : most;
}

} // namespace

void Trials::prepare(llvm::ArrayRef<Setting> settings) {
  llvm::parallelFor(0, settings.size(), [&](size_t i) { fitting(settings[i]); });
}

bool Trials::cannotBeCompiled(const Setting &setting) {
  std::lock_guard lock(mutex_);
  auto found = known_.find(setting);
  return found != known_.end() && !found->second;
}

void Trials::add(const Setting &setting, const plan::Plan &plan) {
  std::lock_guard lock(mutex_);
  known_[setting] = Trial{setting, rankBytes(plan), plan.predicted_ms()};
}

llvm::Expected<Trial> Trials::at(const Setting &setting) {
  if (std::lock_guard lock(mutex_); known_.contains(setting) && known_[setting])
    return *known_[setting];
  auto plan = compile_(setting);
  if (plan) {
    add(setting, *plan);
    return at(setting);
  }
  std::lock_guard lock(mutex_);
  known_[setting] = std::nullopt;
  return plan.takeError();
}

std::optional<Trial> Trials::fitting(const Setting &setting) {
  if (cannotBeCompiled(setting))
    return std::nullopt;
  auto trial = at(setting);
  if (trial && fits(*trial))
    return *trial;
  llvm::consumeError(trial.takeError());
  return std::nullopt;
}

llvm::Expected<LargestBatch> largestBatch(Trials &trials, const Setting &setting, bool smaller) {
  const int64_t most = smaller ? setting.batch - 1 : kMostRows;
  const int64_t begin = smaller || setting.batch > 1 ? setting.batch : 32; // of the search
  trials.prepare({withBatch(setting, 1), withBatch(setting, begin)});
  auto first = trials.at(withBatch(setting, 1));
  if (!first)
    return first.takeError();
  if (!trials.fits(*first))
    return LargestBatch{std::nullopt, *first, ""};

  Trial low = *first;
  std::optional<Trial> before, high; // the largest that fits, the one before it, the smallest that does not
  int64_t end = most + 1;            // does not fit, or cannot be compiled
  int64_t guess = begin;
  for (unsigned tries = 0; low.setting.batch + 1 < end; ++tries) {
    guess = tries == 0 && smaller ? end : std::clamp(guess, low.setting.batch + 1, end - 1);
    auto trial = trials.at(withBatch(setting, guess));
    if (!trial)
      llvm::consumeError(trial.takeError());
    if (trial && trials.fits(*trial)) {
      before = std::exchange(low, *trial);
    } else {
      end = guess;
      high = trial ? std::optional(*trial) : std::nullopt;
    }
    // Between two neighbours a line is nearly exact. Where it is not, halving ends the search.
    int64_t batch = low.setting.batch;
    if (tries % 4 == 3 && end <= kMostRows)
      guess = batch + (end - batch) / 2;
    else if (high)
      guess = crossing(low, *high, trials.budget(), batch + 1, end - 1);
    else if (before)
      guess = 1 + crossing(*before, low, trials.budget(), batch, std::min(16 * batch, end - 1));
    else
      guess = batch + (end - batch) / 2;
  }
  // Memory dips where something is cut into one piece more.
  llvm::SmallVector<Setting> behind;
  for (int64_t rows = 1; rows <= kBeyond && low.setting.batch + rows <= most; ++rows)
    behind.push_back(withBatch(setting, low.setting.batch + rows));
  trials.prepare(behind);
  std::string refused;
  for (int64_t rows = 1; rows <= kBeyond && low.setting.batch + rows <= most; ++rows) {
    auto trial = trials.at(withBatch(setting, low.setting.batch + rows));
    bool fits = trial && trials.fits(*trial);
    if (rows == 1)
      high = trial ? std::optional(*trial) : std::nullopt;
    std::string why = trial ? std::string() : llvm::toString(trial.takeError());
    if (rows == 1)
      refused = why;
    if (fits) {
      low = *trial;
      rows = 0;
    }
  }
  return LargestBatch{low, high, refused};
}

/// The same rows of an update in the fewest micro-steps that fit.
static std::optional<Trial> moreMicroSteps(Trials &trials, const Setting &now) {
  llvm::SmallVector<int64_t> cuts; // ascending
  for (int64_t cut = 2; cut <= now.batch && cut * now.accumulate <= kMostMicroSteps; ++cut)
    if (now.batch % cut == 0)
      cuts.push_back(cut);
  std::optional<Trial> best;
  for (size_t low = 0, high = cuts.size(); low < high;) {
    size_t middle = low + (high - low) / 2;
    Setting cut{now.batch / cuts[middle], now.ranks, now.zero, unsigned(now.accumulate * cuts[middle])};
    if (auto trial = trials.fitting(cut)) {
      best = trial;
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

/// The lowest stage, from `now.zero` on, that fits.
static std::optional<Trial> lowestStage(Trials &trials, Setting now) {
  for (; now.zero <= 3; ++now.zero)
    if (auto trial = trials.fitting(now))
      return trial;
  return std::nullopt;
}

/// The least multiple of the ranks that fits, at its lowest stage. `sameRows`: of an update, the batch is cut; else
/// of a rank.
static std::optional<Trial> moreRanks(Trials &trials, const Setting &now, bool sameRows) {
  for (unsigned times = 2; times <= 8; times *= 2) {
    Setting more{now.batch, now.ranks * times, 3, now.accumulate};
    if (more.ranks > kMostRanks || (sameRows && now.batch % times))
      break;
    if (sameRows)
      more.batch /= times;
    if (!trials.fitting(more))
      continue;
    more.zero = now.ranks > 1 ? now.zero : 0;
    return lowestStage(trials, more);
  }
  return std::nullopt;
}

/// Fewer rows.
static std::optional<Trial> smallerBatch(Trials &trials, const Setting &setting) {
  auto result = largestBatch(trials, setting, /*smaller=*/true);
  if (result)
    return result->most;
  llvm::consumeError(result.takeError());
  return std::nullopt;
}

std::vector<Trial> changesThatFit(Trials &trials, const Setting &now) {
  std::map<Setting, Trial> found;
  auto add = [&](const std::optional<Trial> &trial) {
    if (trial)
      found.insert({trial->setting, *trial});
    return trial.has_value();
  };

  llvm::SmallVector<Setting, 2> stages = {now}; // with the batch as it is none of them fits
  if (now.ranks > 1 && now.zero < 3) {
    Setting higher = now;
    higher.zero = now.zero + 1;
    if (!add(lowestStage(trials, higher))) {
      higher.zero = 3;
      stages.push_back(higher);
    }
  }
  llvm::SmallVector<llvm::unique_function<std::optional<Trial>()>> searches;
  for (const Setting &setting : stages) {
    searches.push_back([&] { return smallerBatch(trials, setting); });
    searches.push_back([&] { return moreMicroSteps(trials, setting); });
  }
  for (bool sameRows : {true, false})
    searches.push_back([&, sameRows] { return moreRanks(trials, now, sameRows); });
  std::vector<std::optional<Trial>> results(searches.size());
  llvm::parallelFor(0, searches.size(), [&](size_t i) { results[i] = searches[i](); });
  llvm::for_each(results, add);
  for (unsigned times = 2; times <= 8 && found.empty() && now.ranks * times <= kMostRanks; times *= 2)
    add(smallerBatch(trials, {now.batch, now.ranks * times, 3, now.accumulate}));

  std::vector<Trial> list;
  for (auto &entry : found)
    list.push_back(entry.second);
  llvm::stable_sort(list, [](const Trial &a, const Trial &b) {
    return std::pair(a.setting.ranks, a.msPerSample()) < std::pair(b.setting.ranks, b.msPerSample());
  });
  return list;
}

} // namespace shardc
