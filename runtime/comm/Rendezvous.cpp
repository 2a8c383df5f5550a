// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/Rendezvous.h"
#include "ir/base/Error.h"
#include "runtime/comm/Roll.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace shardc {
namespace {

/// Once it is clear that it will not work, the others have this long to come and be told (seconds).
constexpr double kGrace = 5;
constexpr llvm::StringLiteral kWelcome = "welcome";

/// Zeros, of that size for ever; empty, with errno, if the host has not so much: better now than by a signal
/// later.
Descriptor makeMemory(size_t bytes) {
  Descriptor memory(memfd_create("shardc-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory)
    return memory;
  if (int failed = posix_fallocate(memory.get(), 0, off_t(bytes))) {
    errno = failed;
    return Descriptor();
  }
  fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return memory;
}

/// Rank 0: takes the roll until all have come, or cannot any more, and tells them.
class Host {
public:
  explicit Host(const ProcessGroupOptions &options) : options_(options), roll_(Hello::of(options)) {}

  llvm::Expected<Rendezvous> meet(size_t memoryBytes) {
    Deadline deadline = after(options_.timeLimit);
    listener_ = listenAt(socketAddress(options_.name), deadline);
    if (!listener_ && errno == EADDRINUSE)
      return userError(
          "ranks: two processes are rank 0 of one job: " + options_.name,
          "another run of the same name is just starting: give each a port or job name of its own");
    if (!listener_)
      return userError(llvm::Twine("ranks: no socket for the other ranks: ") + strerror(errno),
                       "they are found by one");
    takeRoll(deadline);
    Refusal refusal = roll_.judge(options_.timeLimit);
    if (!refusal.message.empty())
      return refuse(refusal);
    Rendezvous meeting;
    meeting.peers.resize(options_.size);
    meeting.memory = makeMemory(memoryBytes);
    if (!meeting.memory)
      return refuse(
          {("ranks: no shared memory of " + llvm::Twine(memoryBytes) + " bytes: " + strerror(errno)).str(),
           "the ranks need it to talk to each other"});
    for (Caller &caller : callers_)
      if (caller.rank) {
        // One that has just gone is seen later by its socket.
        sendPacket(caller.socket, kWelcome, meeting.memory.get());
        meeting.peers[caller.rank] = std::move(caller.socket);
      }
    return meeting;
  }

private:
  struct Caller {
    Descriptor socket;
    unsigned rank = 0; ///< 0: has not said it, or is none
  };

  void takeRoll(Deadline deadline) {
    bool hopeless = false;
    while (!roll_.isComplete() && !isOver(deadline)) {
      if (!hopeless && roll_.isHopeless()) {
        hopeless = true;
        deadline = std::min(deadline, after(kGrace));
      }
      waitForOne(deadline);
    }
  }

  /// Somebody calls, or says who he is, or goes.
  void waitForOne(Deadline deadline) {
    std::vector<pollfd> waits = {{listener_.get(), POLLIN, 0}};
    for (const Caller &caller : callers_)
      waits.push_back({caller.socket.get(), POLLIN, 0});
    if (poll(waits.data(), waits.size(), millisecondsTo(deadline)) <= 0)
      return;
    for (size_t i = callers_.size(); i-- > 0;)
      if (waits[i + 1].revents)
        hear(callers_[i]);
    if (waits[0].revents)
      if (Descriptor socket = acceptFrom(listener_))
        callers_.push_back({std::move(socket)});
  }

  void hear(Caller &caller) {
    auto packet = receivePacket(caller.socket, after(0));
    if (!packet) {
      if (caller.rank)
        roll_.remove(caller.rank);
      caller = {}; // poll passes over it
    } else if (!packet->empty()) {
      if (std::optional<Hello> hello = roll_.add(*packet))
        caller.rank = hello->rank;
    }
  }

  llvm::Error refuse(const Refusal &refusal) {
    for (const Caller &caller : callers_)
      if (caller.socket)
        sendPacket(caller.socket, refusal.message + '\n' + refusal.hint);
    return userError(refusal.message, refusal.hint);
  }

  const ProcessGroupOptions &options_;
  Roll roll_;
  Descriptor listener_;
  std::vector<Caller> callers_;
};

/// The other ranks.
llvm::Expected<Rendezvous> callHost(const ProcessGroupOptions &options, size_t memoryBytes) {
  Descriptor socket = connectTo(socketAddress(options.name), after(options.timeLimit));
  if (!socket) {
    Refusal refusal = didNotCome(0u, options.size, options.timeLimit);
    return userError(refusal.message, "this is rank " + llvm::Twine(options.rank) + "; " + refusal.hint);
  }
  Rendezvous meeting;
  std::optional<std::string> answer;
  if (sendPacket(socket, Hello::of(options).packet()))
    answer = receivePacket(socket, after(options.timeLimit + 2 * kGrace), &meeting.memory);
  if (!answer)
    return userError("ranks: rank 0 has ended before all had come", "see what it has said");
  if (answer->empty())
    return userError("ranks: rank 0 does not answer", "it may have been stopped");
  if (*answer != kWelcome) {
    auto [message, hint] = llvm::StringRef(*answer).split('\n');
    return userError(message, hint);
  }
  struct stat status = {};
  if (!meeting.memory || fstat(meeting.memory.get(), &status) != 0 || size_t(status.st_size) != memoryBytes)
    return userError("ranks: rank 0 is of another version of shardc", "start all ranks with one program");
  meeting.peers.push_back(std::move(socket));
  return meeting;
}

} // namespace

llvm::Expected<Rendezvous> meetRanks(const ProcessGroupOptions &options, size_t memoryBytes) {
  return options.rank == 0 ? Host(options).meet(memoryBytes) : callHost(options, memoryBytes);
}

} // namespace shardc
