// SPDX-License-Identifier: Apache-2.0
// shardc-opt --pack: the packer alone, on problems in MiniMalloc's format.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace shardc {

/// Reads a CSV file with the columns id, lower, upper and size (half-open lives, whole numbers) in
/// any order, packs it without alignment, and prints height, lower bound, gap and time. Offsets
/// that the file has are checked, their height is printed, too, and they stay where none lower are found. Other columns are skipped, those
/// that would make it another problem (alignment, hint, gaps, end) refused. Without a capacity the
/// height is as low as the work permits. `outputPath`: where `id,lower,upper,size,offset` goes, if
/// not empty and only if it fits; "-" is stdout, and what is printed then goes to stderr. Errors:
/// bad files with file and line; DoesNotFit.
llvm::Error packCsv(llvm::StringRef path, std::optional<uint64_t> capacity,
                    llvm::StringRef outputPath);

} // namespace shardc
