// SPDX-License-Identifier: Apache-2.0
// Files that are written in full or not at all, and read whole.
#pragma once

#include "ir/base/Error.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace shardc {

/// `PATH: cannot be written: REASON`, and what to do about it.
llvm::Error cannotWrite(llvm::StringRef path, std::error_code reason, Exit exit = Exit::BadInput);

/// Calls `write`, then leaves what it wrote as `path`: a temporary file in the same folder is
/// written, synchronised and renamed, so a reader finds the old content or the new one, whatever
/// stops us. On an error nothing is left behind, nor where we are killed on a file system that
/// knows files without names (O_TMPFILE; elsewhere PATH.*.part). A path that exists and is no
/// plain file (/dev/stdout, a pipe) is written directly. "-": the standard output. Symbolic links
/// are followed. Errors: those of `write`, and cannotWrite.
llvm::Error writeFileAtomically(llvm::StringRef path,
                                llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write);

/// What a file or pipe holds (a device: 1 MiB at most), "-": the standard input; with a null behind it. Read, not mapped: a file that shrinks meanwhile would end us
/// by a signal. Errors: `PATH: cannot be read: REASON`, or `PATH: too large: ...`.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(llvm::StringRef path, uint64_t mostBytes);

} // namespace shardc
