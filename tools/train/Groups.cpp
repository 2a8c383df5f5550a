// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Groups.h"
#include "runtime/comm/Local.h"
#include "runtime/comm/Process.h"

namespace shardc {

Groups makeLocalGroups(unsigned ranks, bool withShadows) {
  Groups groups;
  groups.ranks = makeLocalGroup(ranks);
  if (withShadows)
    groups.shadows = makeLocalGroup(ranks);
  return groups;
}

llvm::Error joinGroups(const Launch &launch, bool withShadows, Groups &groups) {
  auto join = [&](const char *what, std::vector<std::unique_ptr<Communicator>> &ends) -> llvm::Error {
    ProcessGroupOptions options;
    options.rank = launch.rank;
    options.size = launch.size;
    options.name = launch.rendezvous + what;
    auto communicator = joinProcessGroup(options);
    if (!communicator)
      return communicator.takeError();
    ends.push_back(std::move(*communicator));
    return llvm::Error::success();
  };
  if (llvm::Error error = join("", groups.ranks))
    return error;
  return withShadows ? join(" races", groups.shadows) : llvm::Error::success();
}

} // namespace shardc
