// SPDX-License-Identifier: Apache-2.0
// How the threads of kernels wait for each other.
#pragma once

namespace shardc {

/// GNU's OpenMP lets a waiting thread spin for milliseconds, so on a machine with other work it holds the core that the
/// thread it waits for needs: a step was seen to take 70 times as long. OpenMP reads how long to spin when the process
/// starts, so this starts the program anew, once, with a shorter time, unless the user has chosen one
/// (GOMP_SPINCOUNT, OMP_WAIT_POLICY). Call it first in main. Without success nothing changes but speed.
void shortenSpinning(char **argv);

} // namespace shardc
