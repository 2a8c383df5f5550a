// SPDX-License-Identifier: Apache-2.0
#include "runtime/Arena.h"
#include "ir/base/Error.h"
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace shardc {

llvm::Expected<Arena> Arena::create(uint64_t bytes, llvm::StringRef place) {
  // One byte at least, so that an empty space has an address.
  uint64_t size = bytes ? bytes : 1;
  void *data = MAP_FAILED;
  if (size <= uint64_t(INT64_MAX))
    data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  else
    errno = ENOMEM;
  if (data == MAP_FAILED)
    return userError(llvm::Twine(place) + ": cannot allocate " + llvm::Twine(bytes) +
                         " bytes: " + std::strerror(errno),
                     "take a smaller batch, or a machine with more memory", Exit::DoesNotFit);
#ifdef MADV_HUGEPAGE
  madvise(data, size, MADV_HUGEPAGE); // fewer page faults and TLB misses; a wish only
#endif
  return Arena(static_cast<char *>(data), size);
}

Arena::~Arena() {
  if (data_)
    munmap(data_, bytes_);
}

} // namespace shardc
