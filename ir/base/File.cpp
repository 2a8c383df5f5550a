// SPDX-License-Identifier: Apache-2.0
#include "ir/base/File.h"
#include "ir/base/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

namespace shardc {
namespace {

Error cannotWrite(StringRef path, std::error_code reason) {
  StringRef folder = sys::path::parent_path(path);
  std::string hint;
  if (reason == std::errc::no_space_on_device)
    hint = "free some space, or choose a path on another disk";
  else if (reason == std::errc::no_such_file_or_directory)
    hint = ("create the folder " + folder + " first").str();
  else
    hint = "choose a path that you may write to";
  return userError(path + ": cannot be written: " + reason.message(), hint);
}

/// Runs `write` on `fd`, pushes the bytes to the disk where `sync` is set, and closes it in any
/// case.
Error writeTo(int fd, StringRef path, bool sync, function_ref<Error(raw_ostream &)> write) {
  raw_fd_ostream os(fd, /*shouldClose=*/false);
  Error written = write(os);
  os.flush();
  std::error_code reason = os.error();
  os.clear_error(); // the destructor of a stream with an error would abort
  if (!reason && sync && ::fsync(fd) != 0)
    reason = std::error_code(errno, std::generic_category());
  if (::close(fd) != 0 && !reason)
    reason = std::error_code(errno, std::generic_category());
  if (written)
    return written;
  return reason ? cannotWrite(path, reason) : Error::success();
}

/// Makes the rename itself durable. A file system that cannot do that is no reason to fail.
void syncFolder(StringRef folder) {
  int fd = ::open(folder.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return;
  (void)::fsync(fd);
  ::close(fd);
}

} // namespace

Error writeFileAtomically(StringRef path, function_ref<Error(raw_ostream &)> write) {
  SmallString<128> target(path);
  sys::fs::file_status status;
  bool exists = !sys::fs::status(path, status) && sys::fs::exists(status);
  if (exists && sys::fs::is_directory(status))
    return cannotWrite(path, std::make_error_code(std::errc::is_a_directory));
  int fd = -1;
  if (exists && !sys::fs::is_regular_file(status)) {
    if (std::error_code reason = sys::fs::openFileForWrite(path, fd, sys::fs::CD_OpenExisting))
      return cannotWrite(path, reason);
    return writeTo(fd, path, /*sync=*/false, write);
  }
  if (exists && sys::fs::real_path(path, target))
    target = path;

  SmallString<128> temporary;
  if (std::error_code reason = sys::fs::createUniqueFile(target + ".%%%%%%%%.part", fd, temporary))
    return cannotWrite(path, reason);
  if (Error error = writeTo(fd, path, /*sync=*/true, write)) {
    sys::fs::remove(temporary);
    return error;
  }
  if (std::error_code reason = sys::fs::rename(temporary, target)) {
    sys::fs::remove(temporary);
    return cannotWrite(path, reason);
  }
  StringRef folder = sys::path::parent_path(target);
  syncFolder(folder.empty() ? "." : folder);
  return Error::success();
}

Expected<std::unique_ptr<MemoryBuffer>> readFile(StringRef path, uint64_t mostBytes) {
  constexpr size_t kChunk = 1 << 16;
  constexpr uint64_t kMostOfDevice = 1 << 20;
  auto cannotRead = [&](std::error_code reason) {
    return userError(path + ": cannot be read: " + reason.message(), "check the path, and whether you may read it");
  };
  int fd = STDIN_FILENO;
  if (path != "-")
    if (std::error_code reason = sys::fs::openFileForRead(path, fd))
      return cannotRead(reason);
  auto close = make_scope_exit([&] { fd != STDIN_FILENO && ::close(fd); });
  SmallVector<char, 0> bytes;
  sys::fs::file_status status;
  if (std::error_code reason = sys::fs::status(fd, status))
    return cannotRead(reason);
  if (status.type() == sys::fs::file_type::character_file) // /dev/zero has no end
    mostBytes = std::min(mostBytes, kMostOfDevice);
  if (status.type() == sys::fs::file_type::regular_file)
    bytes.reserve(std::min(status.getSize(), mostBytes) + kChunk + 1);
  while (bytes.size() <= mostBytes) {
    const size_t before = bytes.size();
    bytes.resize_for_overwrite(before + kChunk);
    ssize_t got = sys::RetryAfterSignal(-1, ::read, fd, bytes.data() + before, kChunk);
    if (got < 0)
      return cannotRead(std::error_code(errno, std::generic_category()));
    bytes.resize(before + size_t(got));
    if (got == 0)
      return std::make_unique<SmallVectorMemoryBuffer>(std::move(bytes), path);
  }
  const bool ends = status.type() == sys::fs::file_type::regular_file;
  return userError(path + ": too large: got " + (ends ? Twine(status.getSize()) + " bytes" : Twine("no end")) + ", wanted at most " +
                       Twine(mostBytes) + (ends ? "" : " bytes"),
                   "is it the right file?");
}

} // namespace shardc
