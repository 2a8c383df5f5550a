// SPDX-License-Identifier: Apache-2.0
#include "tools/common/Report.h"
#include "ir/base/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc {
namespace {

void print(StringRef message, StringRef hint) {
  errs() << "shardc: error: " << message << '\n';
  if (!hint.empty())
    errs() << "hint: " << hint << '\n';
}

} // namespace

int reportAndExitCode(Error error) {
  std::optional<Exit> code;
  handleAllErrors(
      std::move(error),
      [&](const UserError &mistake) {
        print(mistake.text(), mistake.hint());
        code = code.value_or(mistake.code());
      },
      [&](const ErrorInfoBase &other) {
        print(other.message(), "");
        code = code.value_or(Exit::BadInput);
      });
  outs().flush();
  if (std::error_code reason = outs().error()) {
    outs().clear_error(); // else the stream aborts at exit
    print("stdout: cannot be written: " + reason.message(),
          "free some space, or send the output elsewhere");
    code = code.value_or(Exit::BadInput);
  }
  return int(code.value_or(Exit::Done));
}

} // namespace shardc
