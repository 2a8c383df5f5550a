// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file: magic, version, length, then a Python dict literal.
#pragma once

#include "runtime/ArrayFile.h"

namespace shardc {

constexpr size_t kNpyPrelude =
    12; ///< enough bytes to know how long the header is, in every version

/// Bytes before the elements, magic included, from the first `kNpyPrelude` bytes (fewer: an error).
/// Versions 1 to 3; at most 1 MiB. `place` begins the message.
llvm::Expected<size_t> npyHeaderSize(llvm::StringRef prelude, const llvm::Twine &place);

/// Fills typeName, dtype and dims. Requires: `header` has the size that `npyHeaderSize` told.
/// Object, structured, big-endian and Fortran-ordered arrays have no dtype, and typeName says why.
llvm::Error parseNpyHeader(llvm::StringRef header, const llvm::Twine &place, FileArray &array);

} // namespace shardc
