// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Threads.h"
#include <climits>
#include <cstdlib>
#include <unistd.h>

namespace shardc {

/// About 0.1 ms: longer than waking a thread takes, much shorter than a slice of the scheduler.
static constexpr const char *kSpins = "2000";

void shortenSpinning(char **argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY"))
    return;
  char self[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0)
    return;
  self[length] = '\0';
  ::setenv("GOMP_SPINCOUNT", kSpins, /*overwrite=*/1);
  ::execv(self, argv);
}

} // namespace shardc
