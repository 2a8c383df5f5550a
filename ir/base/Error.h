// SPDX-License-Identifier: Apache-2.0
// User mistakes as llvm::Error: "place: what is wrong: got X, wanted Y", an optional hint, an exit
// code.
#pragma once

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace shardc {

/// Exit codes of every tool (see --help).
enum class Exit : int { Done = 0, BadInput = 1, DoesNotFit = 3, Fault = 4, Interrupted = 130 };

/// One mistake, as a person reads it. `hint` says what to do and may be empty.
class UserError : public llvm::ErrorInfo<UserError> {
public:
  static char ID;
  UserError(std::string message, std::string hint, Exit code)
      : message_(std::move(message)), hint_(std::move(hint)), code_(code) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
  llvm::StringRef text() const { return message_; } ///< without the hint
  llvm::StringRef hint() const { return hint_; }
  Exit code() const { return code_; }

private:
  std::string message_, hint_;
  Exit code_;
};

/// `userError("l0/MatMul: inner sizes differ: got 512 and 500, wanted equal ones", "check --dim")`.
llvm::Error userError(const llvm::Twine &message, const llvm::Twine &hint = "",
                      Exit code = Exit::BadInput);

} // namespace shardc
