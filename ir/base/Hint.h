// SPDX-License-Identifier: Apache-2.0
// What whoever called knows to do about a mistake that came without a hint.
#pragma once

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// Gives `hint` to each UserError in `error` that has none.
llvm::Error withHint(llvm::Error error, const llvm::Twine &hint);

template <typename T>
llvm::Expected<T> withHint(llvm::Expected<T> value, const llvm::Twine &hint) {
  if (value)
    return value;
  return withHint(value.takeError(), hint);
}

} // namespace shardc
