// SPDX-License-Identifier: Apache-2.0
// Fingerprint of a file's bytes, to notice that a model changed after a plan was made of it. Not cryptographic.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <string>

namespace shardc {

/// 32 hex digits (XXH3, 128 bits); several GB/s.
std::string fileHash(llvm::StringRef bytes);

} // namespace shardc
