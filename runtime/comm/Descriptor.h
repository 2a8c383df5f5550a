// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed at the end.
#pragma once

#include <unistd.h>
#include <utility>

namespace shardc {

class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor &&other) : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor &operator=(Descriptor &&other) {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  void close() {
    if (fd_ >= 0)
      ::close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

private:
  int fd_ = -1;
};

} // namespace shardc
