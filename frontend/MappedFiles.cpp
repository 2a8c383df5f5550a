// SPDX-License-Identifier: Apache-2.0
#include "frontend/MappedFiles.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardc {

llvm::Expected<const MappedFiles::External *> MappedFiles::external(llvm::StringRef location,
                                                                    const llvm::Twine &place) {
  if (auto known = externals_.find(location); known != externals_.end())
    return &known->second;

  auto wrong = [&](llvm::StringRef what, llvm::StringRef wanted,
                   llvm::StringRef hint =
                       "put the weights into the model's folder and export again, or give "
                       "--external-data-root") {
    return userError(place + ": external data " + what + ": got " + quoted(location) + ", wanted " +
                         wanted,
                     hint);
  };
  if (location.empty())
    return wrong("has no location", "a path below the model's folder");
  if (location.contains('\0'))
    return wrong("has no valid location", "a path below the model's folder");
  if (location.starts_with("/"))
    return wrong("has an absolute path", "a path below the model's folder");
  llvm::SmallVector<llvm::StringRef, 4> components;
  location.split(components, '/', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  llvm::erase(components, ".");
  if (llvm::is_contained(components, ".."))
    return wrong("leaves the model's folder", "a path below it");
  if (components.empty() || location.ends_with("/"))
    return wrong("is a folder", "a regular file");

  llvm::SmallString<128> path(root_ + "/" + llvm::join(components, "/"));
  llvm::sys::fs::make_absolute(path);
  llvm::sys::path::remove_dots(path);

  int fd = open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  auto closeAtEnd = llvm::make_scope_exit([&] {
    if (fd >= 0)
      close(fd);
  });
  for (size_t i = 0; fd >= 0 && i < components.size(); ++i) {
    std::string name = components[i].str();
    bool last = i + 1 == components.size();
    struct stat info;
    if (!fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) && S_ISLNK(info.st_mode))
      return wrong("is or goes through a symbolic link", "a regular file below the model's folder",
                   "copy the model and its data into a folder of their own (cp -L)");
    // O_NOFOLLOW is what protects; the test above only names the mistake. O_NONBLOCK: a pipe must
    // not hang us.
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
    int inner = openat(fd, name.c_str(), flags);
    int error = errno;
    close(fd);
    fd = inner;
    errno = error;
  }
  if (fd < 0) {
    if (errno == ENOENT)
      return &externals_.try_emplace(location, External{path.str().str(), nullptr}).first->second;
    return userError(place + ": external data " + quoted(location) +
                     " cannot be opened: " + std::strerror(errno));
  }
  struct stat info;
  if (fstat(fd, &info) || !S_ISREG(info.st_mode))
    return wrong("is not a file", "a regular file");
  auto bytes = llvm::MemoryBuffer::getOpenFile(llvm::sys::fs::convertFDToNativeFile(fd), path,
                                               info.st_size, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return userError(place + ": external data " + quoted(location) +
                     " cannot be mapped: " + bytes.getError().message());
  return &externals_.try_emplace(location, External{path.str().str(), std::move(*bytes)})
              .first->second;
}

} // namespace shardc
