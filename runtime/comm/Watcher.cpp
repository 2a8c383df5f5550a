// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/Watcher.h"
#include <csignal>
#include <sys/eventfd.h>

namespace shardc {

Watcher::Watcher(Group &group, unsigned self, std::vector<Peer> peers)
    : group_(group), self_(self), peers_(std::move(peers)), stop_(eventfd(0, EFD_CLOEXEC)) {
  // Here and not by the thread, which begins when calls are already made: they shall allocate nothing.
  waits_.push_back({stop_.get(), POLLIN, 0});
  for (const Peer &peer : peers_)
    waits_.push_back({peer.socket.get(), POLLIN, 0});
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watcher::~Watcher() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Watcher::run() {
  while (!waits_[0].revents) {
    if (poll(waits_.data(), waits_.size(), -1) <= 0)
      continue;
    for (size_t i = 0; i < peers_.size(); ++i)
      if (waits_[i + 1].revents) { // nothing is ever said on them
        unsigned rank = peers_[i].rank;
        if (!group_.hasLeft(rank))
          group_.abort(self_, causeOf(rank, "its process ended"));
        waits_[i + 1].fd = -1;
      }
  }
}

} // namespace shardc
