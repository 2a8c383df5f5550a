// SPDX-License-Identifier: Apache-2.0
// A thread that sees other processes end.
#pragma once

#include "runtime/comm/Descriptor.h"
#include "runtime/comm/Group.h"
#include <poll.h>
#include <thread>
#include <vector>

namespace shardc {

/// Aborts the group when a socket closes whose rank has not left it. Takes no signals, and no time while
/// nothing happens. Requires: the group outlives it.
class Watcher {
public:
  struct Peer {
    unsigned rank;
    Descriptor socket;
  };
  Watcher(Group &group, unsigned self, std::vector<Peer> peers);
  /// The others see this rank's sockets closed.
  ~Watcher();

private:
  void run();

  Group &group_;
  unsigned self_;
  std::vector<Peer> peers_;
  Descriptor stop_;
  std::vector<pollfd> waits_; ///< stop_, then the peers
  std::thread thread_;
};

} // namespace shardc
