// SPDX-License-Identifier: Apache-2.0
// The groups of the host.
#include "runtime/comm/Local.h"
#include "runtime/comm/Process.h"
#include "tests/runtime/CommunicatorHarness.h"

namespace shardc {
namespace {

/// Ranks that could as well be processes: each has the memory mapped and a connection of its own. Small
/// staging areas, so that most arrays go in several chunks.
Ends joinThreads(unsigned ranks) {
  const std::string job = uniqueJob();
  Ends ends(ranks);
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ProcessGroupOptions options;
      options.rank = r;
      options.size = ranks;
      options.name = job;
      options.stagingBytes = 5000;
      auto end = joinProcessGroup(options);
      if (end)
        ends[r] = std::move(*end);
      else
        ADD_FAILURE() << llvm::toString(end.takeError());
    });
  for (std::thread &thread : threads)
    thread.join();
  return ends;
}

} // namespace

std::vector<GroupKind> groupKinds() { return {{"Local", makeLocalGroup}, {"Process", joinThreads}}; }

} // namespace shardc
