// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/Group.h"
#include "llvm/ADT/Twine.h"
#include <cstring>
#include <thread>

namespace shardc {

std::string causeOf(unsigned rank, llvm::StringRef text) {
  if (text.starts_with("rank ")) // names a rank already
    return text.str();
  return ("rank " + llvm::Twine(rank) + ": " + (text.empty() ? "stopped" : text)).str();
}

void Group::disturb() {
  for (Barrier &barrier : barriers_)
    barrier.disturb();
}

bool Group::meet(unsigned channel, unsigned rank, unsigned ranks) {
  if (barriers_[channel].arriveAndWait(ranks))
    return true;
  for (unsigned r = 0; r < ranks && !aborted(); ++r)
    if (hasLeft(r))
      abort(rank, causeOf(r, "left before the others were done"));
  return false;
}

void Group::abort(unsigned rank, llvm::StringRef text) {
  Member &self = member(rank);
  uint32_t silent = 0;
  if (self.speaking.compare_exchange_strong(silent, 1)) {
    size_t length = std::min(text.size(), sizeof self.cause - 1);
    memcpy(self.cause, text.data(), length);
    self.cause[length] = 0;
    uint32_t nobody = 0;
    speaker_.compare_exchange_strong(nobody, rank + 1);
  }
  while (!aborted()) // another thread of this rank is just writing
    std::this_thread::yield();
  disturb();
}

std::string Group::cause() const {
  uint32_t speaker = speaker_.load();
  return speaker ? member(speaker - 1).cause : "";
}

void Group::leave(unsigned rank) {
  member(rank).left.store(1);
  disturb();
}

} // namespace shardc
