// SPDX-License-Identifier: Apache-2.0
// This program once more for each rank, on this host, as torchrun would start it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <string>

namespace shardc {

struct SpawnOptions {
  std::string program;                    ///< path of an executable
  llvm::ArrayRef<const char *> arguments; ///< from its name on
  unsigned ranks = 1;
  /// Once a rank has failed, the others have so many seconds to end by themselves.
  double patience = 25;
  const std::atomic<bool> *stop = nullptr; ///< set: SIGINT came before there were ranks to tell
};

/// Starts the ranks and waits for all of them. SIGINT and SIGTERM that reach this process go on to
/// them, who begin with both blocked (admitSignals); where this process dies, they are told to end.
/// Returns their exit code: 0, or the worst of them; 4 (Exit::Fault) where one ended by a signal, 130
/// where that is what it was asked to stop by.
/// Error: one cannot be started; then none is left.
llvm::Expected<int> spawnRanks(const SpawnOptions &options);
/// The same of this very program, with these arguments.
llvm::Expected<int> spawnSelf(llvm::ArrayRef<const char *> arguments, unsigned ranks,
                              const std::atomic<bool> *stop = nullptr);
/// For a rank that knows what to do when asked to stop: from now on signals arrive, and what came
/// before.
void admitSignals();

} // namespace shardc
