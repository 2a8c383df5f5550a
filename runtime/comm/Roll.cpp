// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/Roll.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

namespace shardc {
namespace {

constexpr char kVersion[8] = {'s', 'h', 'a', 'r', 'd', 'c', ' ', '1'};
/// More ranks than that, somebody claims in error.
constexpr unsigned kMaxRanks = 1 << 16;
constexpr size_t kMaxPlan = 256;

struct Head {
  char version[sizeof kVersion];
  uint32_t rank, size;
  int64_t stagingBytes;
};

/// "rank 2", "ranks 1, 2 and 5".
std::string listRanks(llvm::ArrayRef<unsigned> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

using Hellos = llvm::ArrayRef<std::optional<Hello>>;

/// "plans differ: got b at ranks 1 and 2, wanted a as at rank 0", or "" where all that came agree.
template <typename F> std::string differences(Hellos hellos, const char *what, F valueOf) {
  std::string own = valueOf(*hellos[0]);
  std::vector<std::pair<std::string, std::vector<unsigned>>> others; // in the order of their first ranks
  for (const auto &hello : hellos)
    if (std::string value = hello ? valueOf(*hello) : own; value != own) {
      auto known = llvm::find_if(others, [&](const auto &other) { return other.first == value; });
      if (known == others.end())
        known = others.insert(known, {value, {}});
      known->second.push_back(hello->rank);
    }
  std::string text;
  for (const auto &[value, ranks] : others)
    text += (text.empty() ? " differ: got " : ", ") + value + " at " + listRanks(ranks);
  return text.empty() ? text : "ranks: " + (what + text) + ", wanted " + own + " as at rank 0";
}

} // namespace

Refusal didNotCome(llvm::ArrayRef<unsigned> missing, unsigned size, double timeLimit) {
  std::string message;
  llvm::raw_string_ostream(message) << "ranks: " << listRanks(missing) << " of " << size
                                    << " did not come within " << llvm::format("%g", timeLimit) << " s";
  return {message, "start all ranks on this host, by one launcher"};
}

Hello Hello::of(const ProcessGroupOptions &options) {
  return {options.rank, options.size, options.stagingBytes, options.plan.substr(0, kMaxPlan)};
}

std::string Hello::packet() const {
  Head head = {{}, rank, size, stagingBytes};
  memcpy(head.version, kVersion, sizeof kVersion);
  return std::string(reinterpret_cast<const char *>(&head), sizeof head) + plan;
}

std::optional<Hello> Hello::parse(llvm::StringRef packet) {
  Head head;
  if (packet.size() < sizeof head || packet.size() > sizeof head + kMaxPlan)
    return std::nullopt;
  memcpy(&head, packet.data(), sizeof head);
  if (memcmp(head.version, kVersion, sizeof kVersion) != 0 || head.rank >= head.size || head.size > kMaxRanks)
    return std::nullopt;
  return Hello{head.rank, head.size, head.stagingBytes, packet.drop_front(sizeof head).str()};
}

Roll::Roll(const Hello &self) : ranks_(self.size) { ranks_[0] = self; }

std::optional<Hello> Roll::add(llvm::StringRef packet) {
  std::optional<Hello> hello = Hello::parse(packet);
  if (!hello) {
    refusal_ = {"ranks: a process of another version of shardc calls itself one of this group",
                "start all ranks with one program"};
    return std::nullopt;
  }
  if (ranks_.size() < hello->size)
    ranks_.resize(hello->size);
  std::optional<Hello> &place = ranks_[hello->rank];
  if (place) {
    refusal_ = {("ranks: two processes call themselves rank " + llvm::Twine(hello->rank)).str(),
                "two jobs have the same name: give each a port or job name of its own"};
    return std::nullopt;
  }
  return place = hello;
}

void Roll::remove(unsigned rank) {
  refusal_ = {("ranks: rank " + llvm::Twine(rank) + " has ended before all had come").str(),
              "see what it has said"};
}

bool Roll::isComplete() const {
  return llvm::all_of(ranks_, [](const auto &hello) { return hello.has_value(); });
}

bool Roll::isHopeless() const {
  const Hello &self = *ranks_[0];
  return !refusal_.message.empty() || llvm::any_of(ranks_, [&](const auto &hello) {
    return hello &&
           (hello->size != self.size || hello->plan != self.plan || hello->stagingBytes != self.stagingBytes);
  });
}

Refusal Roll::judge(double timeLimit) const {
  if (!refusal_.message.empty())
    return refusal_;
  std::string text =
      differences(ranks_, "numbers of ranks", [](const Hello &h) { return std::to_string(h.size); });
  if (!text.empty())
    return {text, "start all ranks by one launcher"};
  text = differences(ranks_, "plans", [](const Hello &h) { return h.plan; });
  if (!text.empty())
    return {text, "start all ranks with the same plan file"};
  text = differences(ranks_, "staging sizes", [](const Hello &h) { return std::to_string(h.stagingBytes); });
  if (!text.empty())
    return {text, "start all ranks with one program"};
  std::vector<unsigned> missing;
  for (unsigned r = 0; r < ranks_.size(); ++r)
    if (!ranks_[r])
      missing.push_back(r);
  if (missing.empty())
    return {};
  return didNotCome(missing, ranks_.size(), timeLimit);
}

} // namespace shardc
