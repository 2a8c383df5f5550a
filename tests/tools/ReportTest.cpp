// SPDX-License-Identifier: Apache-2.0
#include "tools/common/Report.h"
#include "ir/base/Error.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

struct Reported {
  int code;
  std::string text;
};

Reported report(Error error) {
  testing::internal::CaptureStderr();
  int code = reportAndExitCode(std::move(error));
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(Report, Success) {
  Reported r = report(Error::success());
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.text, "");
}

TEST(Report, MistakeWithHint) {
  Reported r = report(userError("l0/MatMul: inner sizes differ: got 512 and 500, wanted equal ones",
                                "check --dim"));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.text, "shardc: error: l0/MatMul: inner sizes differ: got 512 and 500, wanted equal "
                    "ones\nhint: check --dim\n");
}

TEST(Report, CodeOfTheFirstOfSeveral) {
  Reported r =
      report(joinErrors(userError("a: too big", "", Exit::DoesNotFit), userError("b: wrong")));
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(r.text, "shardc: error: a: too big\nshardc: error: b: wrong\n");
}

TEST(Report, ForeignError) {
  Reported r = report(createStringError(std::errc::io_error, "x: broken"));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.text, "shardc: error: x: broken\n");
}

} // namespace
} // namespace shardc
