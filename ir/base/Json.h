// SPDX-License-Identifier: Apache-2.0
// JSON out of files that nobody vouches for.
#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace shardc {

/// The object that `text` is. Refuses too what llvm::json does not guard against: nesting deeper than 8, as its recursion could end the
/// process, and a name that the outermost object has twice, of which it keeps the last. Errors say what is wrong, without a place.
llvm::Expected<llvm::json::Object> parseJsonObject(llvm::StringRef text);

} // namespace shardc
