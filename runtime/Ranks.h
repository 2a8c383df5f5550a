// SPDX-License-Identifier: Apache-2.0
// The ranks of a group as threads of this process, and what they agree upon: one fails, all end, with one cause.
#pragma once

#include "ir/base/Error.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>

namespace shardc {

class Communicator;

/// Runs `body` for each communicator of `group`, each on a thread of its own (the first on the caller's), and returns when
/// all have ended. A body's error aborts the group, so that the others end too; what is returned is the error that came
/// first, in its rank's own words.
llvm::Error runRanks(llvm::ArrayRef<std::unique_ptr<Communicator>> group,
                     llvm::function_ref<llvm::Error(Communicator &)> body);

/// Ends the group because of `error`, of which all ranks hear; returns it. Where the executor has aborted the group before,
/// because of one of its kernels, the error names this rank.
llvm::Error abortGroup(Communicator &communicator, llvm::Error error);

/// The error of a rank whose group has ended: "rank 2: l0/MatMul: ...". Requires: a call of the communicator returned false.
llvm::Error groupError(const Communicator &communicator, Exit code = Exit::BadInput);

/// Returns when all ranks have come here; an error where one has failed instead. Channel 0, as all below.
llvm::Error waitForAll(Communicator &communicator);

/// Ranks that run different plans would wait for each other forever. `hash`: of the plan's file, the same length on all.
llvm::Error comparePlans(Communicator &communicator, llvm::StringRef hash);

/// Does any rank wish it? The same answer on all.
llvm::Expected<bool> anyRank(Communicator &communicator, bool wish);

} // namespace shardc
