// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Startup.h"
#include "tools/common/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace shardc {

static const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

void noteStartup(llvm::StringRef done) {
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  details() << llvm::format("%7.2f s  ", seconds.count()) << done << '\n';
}

} // namespace shardc
