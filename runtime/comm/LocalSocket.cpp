// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/LocalSocket.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

namespace shardc {
namespace {

constexpr size_t kMaxPacket = 8 << 10;

Descriptor newSocket() { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

socklen_t fill(sockaddr_un &to, llvm::StringRef address) {
  to = {};
  to.sun_family = AF_UNIX; // the path begins with a 0: an abstract address
  size_t length = std::min(address.size(), sizeof to.sun_path - 1);
  memcpy(to.sun_path + 1, address.data(), length);
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
}

/// Abstract addresses have no owner: anybody on the host may listen or call.
bool isSameUser(const Descriptor &socket) {
  ucred other = {};
  socklen_t length = sizeof other;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == geteuid();
}

/// Calls `attempt` (0, or -1 and errno) until it works, fails for good or the time is over.
template <typename F> bool retry(Deadline deadline, F attempt) {
  for (auto pause = std::chrono::milliseconds(1);;
       pause = std::min(pause * 2, std::chrono::milliseconds(100))) {
    if (attempt() == 0)
      return true;
    bool mayChange = errno == EADDRINUSE || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR;
    if (!mayChange || isOver(deadline))
      return false;
    std::this_thread::sleep_for(pause);
  }
}

} // namespace

Deadline after(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(int64_t(seconds * 1000));
}
bool isOver(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }
int millisecondsTo(Deadline deadline) {
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return int(std::clamp<int64_t>(left, 0, 1 << 30));
}

std::string socketAddress(llvm::StringRef name) {
  return "shardc-" + std::to_string(geteuid()) + "-" + llvm::utohexstr(llvm::xxHash64(name));
}

Descriptor listenAt(llvm::StringRef address, Deadline deadline) {
  Descriptor socket = newSocket();
  sockaddr_un here;
  socklen_t length = fill(here, address);
  auto attempt = [&] { return bind(socket.get(), reinterpret_cast<sockaddr *>(&here), length); };
  if (!socket || !retry(deadline, attempt) || listen(socket.get(), SOMAXCONN) != 0)
    return {};
  return socket;
}

Descriptor acceptFrom(const Descriptor &listener) {
  Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return socket && isSameUser(socket) ? std::move(socket) : Descriptor();
}

Descriptor connectTo(llvm::StringRef address, Deadline deadline) {
  Descriptor socket = newSocket();
  sockaddr_un there;
  socklen_t length = fill(there, address);
  auto attempt = [&] { return connect(socket.get(), reinterpret_cast<sockaddr *>(&there), length); };
  if (!socket || !retry(deadline, attempt) || !isSameUser(socket))
    return {};
  return socket;
}

bool sendPacket(const Descriptor &socket, llvm::StringRef packet, int fd) {
  iovec data = {const_cast<char *>(packet.data()), packet.size()};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t sent;
  do
    sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == ssize_t(packet.size());
}

std::optional<std::string> receivePacket(const Descriptor &socket, Deadline deadline, Descriptor *fd) {
  pollfd wait = {socket.get(), POLLIN, 0};
  while (poll(&wait, 1, millisecondsTo(deadline)) <= 0)
    if (isOver(deadline))
      return "";
  char packet[kMaxPacket];
  iovec data = {packet, sizeof packet};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do
    got = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  for (cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header))
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      int received;
      memcpy(&received, CMSG_DATA(header), sizeof received);
      Descriptor owned(received);
      if (fd)
        *fd = std::move(owned);
    }
  if (got <= 0)
    return std::nullopt;
  return std::string(packet, got);
}

} // namespace shardc
