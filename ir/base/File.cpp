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
#include <utility>

using namespace llvm;

namespace shardc {
namespace {

std::error_code lastError() { return std::error_code(errno, std::generic_category()); }

/// Runs `write` on `fd`, and pushes the bytes to the disk where `sync` is set.
Error writeTo(int fd, StringRef path, bool sync, function_ref<Error(raw_ostream &)> write) {
  raw_fd_ostream os(fd, /*shouldClose=*/false);
  Error written = write(os);
  os.flush();
  std::error_code reason = os.error();
  os.clear_error(); // the destructor of a stream with an error would abort
  if (!reason && sync && ::fsync(fd) != 0)
    reason = lastError();
  if (written)
    return written;
  return reason ? cannotWrite(path, reason) : Error::success();
}

std::string nameOf(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

/// A new file in `folder` that has no name yet: nothing of it is left, whatever ends us. -1 where
/// the file system knows no such files, or they could not be given a name.
int openNameless(StringRef folder) {
  int fd = ::open(folder.str().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd >= 0 && ::access(nameOf(fd).c_str(), F_OK) != 0)
    ::close(std::exchange(fd, -1));
  return fd;
}

/// A name that no file has yet, `model` with its % replaced.
std::error_code giveName(int fd, StringRef model, SmallVectorImpl<char> &name) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    sys::fs::createUniquePath(model, name, /*MakeAbsolute=*/false);
    std::string path(name.begin(), name.end());
    if (::linkat(AT_FDCWD, nameOf(fd).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0)
      return {};
    if (errno != EEXIST)
      break;
  }
  std::error_code reason = lastError();
  name.clear();
  return reason;
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

Error cannotWrite(StringRef path, std::error_code reason, Exit exit) {
  std::string hint = "choose a path that you may write to";
  if (reason == std::errc::no_space_on_device || reason == std::error_code(EDQUOT, std::generic_category()))
    hint = "free some space, or choose a path on another disk";
  else if (reason == std::errc::file_too_large)
    hint = "raise the limit on the size of files (ulimit -f), or choose a path on another disk";
  else if (reason == std::errc::no_such_file_or_directory)
    hint = ("create the folder " + sys::path::parent_path(path) + " first").str();
  return userError(path + ": cannot be written: " + reason.message(), hint, exit);
}

Error writeFileAtomically(StringRef path, function_ref<Error(raw_ostream &)> write) {
  if (path == "-")
    return write(outs());
  if (path.empty())
    return userError("a file to write: got an empty name, wanted a path", "is a variable of the shell empty?");
  SmallString<128> target(path);
  sys::fs::file_status status;
  bool exists = !sys::fs::status(path, status) && sys::fs::exists(status);
  if (exists && sys::fs::is_directory(status))
    return cannotWrite(path, std::make_error_code(std::errc::is_a_directory));
  int fd = -1;
  auto close = make_scope_exit([&] { fd >= 0 && ::close(fd); });
  if (exists && !sys::fs::is_regular_file(status)) {
    if (std::error_code reason = sys::fs::openFileForWrite(path, fd, sys::fs::CD_OpenExisting))
      return cannotWrite(path, reason);
    return writeTo(fd, path, /*sync=*/false, write);
  }
  if (exists && sys::fs::real_path(path, target))
    target = path;
  StringRef folder = sys::path::parent_path(target);
  if (folder.empty())
    folder = ".";

  const std::string model = (target + ".%%%%%%%%.part").str();
  SmallString<128> temporary; // empty: there is none
  auto remove = make_scope_exit([&] { temporary.empty() || sys::fs::remove(temporary); });
  fd = openNameless(folder);
  if (fd < 0)
    if (std::error_code reason = sys::fs::createUniqueFile(model, fd, temporary))
      return cannotWrite(path, reason);
  if (Error error = writeTo(fd, path, /*sync=*/true, write))
    return error;
  if (temporary.empty())
    if (std::error_code reason = giveName(fd, model, temporary))
      return cannotWrite(path, reason);
  if (std::error_code reason = sys::fs::rename(temporary, target))
    return cannotWrite(path, reason);
  temporary.clear();
  syncFolder(folder);
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
