// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

char UserError::ID;

void UserError::log(llvm::raw_ostream &os) const {
  os << message_;
  if (!hint_.empty())
    os << "\nhint: " << hint_;
}

llvm::Error userError(const llvm::Twine &message, const llvm::Twine &hint, Exit code) {
  return llvm::make_error<UserError>(message.str(), hint.str(), code);
}

} // namespace shardc
