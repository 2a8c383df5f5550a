// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Hint.h"
#include "ir/base/Error.h"

namespace shardc {

llvm::Error withHint(llvm::Error error, const llvm::Twine &hint) {
  return llvm::handleErrors(std::move(error), [&](std::unique_ptr<UserError> mistake) {
    if (!mistake->hint().empty())
      return llvm::Error(std::move(mistake));
    return userError(mistake->text(), hint, mistake->code());
  });
}

} // namespace shardc
