// SPDX-License-Identifier: Apache-2.0
#include "ir/base/File.h"
#include "ir/base/Error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
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

} // namespace shardc
