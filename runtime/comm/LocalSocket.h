// SPDX-License-Identifier: Apache-2.0
// Sockets between processes of one host and one user: a message is one packet, and may carry a descriptor.
#pragma once

#include "runtime/comm/Descriptor.h"
#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <optional>
#include <string>

namespace shardc {

using Deadline = std::chrono::steady_clock::time_point;
Deadline after(double seconds);
bool isOver(Deadline deadline);
/// For poll: milliseconds left, rounded up.
int millisecondsTo(Deadline deadline);

/// The address that `name` stands for, in no file system: it is gone with its socket. Other users have other
/// addresses.
std::string socketAddress(llvm::StringRef name);

/// Listens; tries until the deadline while another process does. Empty, with errno, if that does not work.
Descriptor listenAt(llvm::StringRef address, Deadline deadline);
/// The next one that has called; empty if there is none of this user's.
Descriptor acceptFrom(const Descriptor &listener);
/// Tries until the deadline; empty if nobody of this user listens.
Descriptor connectTo(llvm::StringRef address, Deadline deadline);

/// False if the other side has gone. `fd` (not -1) goes along.
bool sendPacket(const Descriptor &socket, llvm::StringRef packet, int fd = -1);
/// Waits for a packet; nothing if the other side has gone. "" if there is none until the deadline.
std::optional<std::string> receivePacket(const Descriptor &socket, Deadline deadline,
                                         Descriptor *fd = nullptr);

} // namespace shardc
