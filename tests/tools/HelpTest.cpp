// SPDX-License-Identifier: Apache-2.0
#include "tools/common/Help.h"
#include <gtest/gtest.h>

namespace shardc {
namespace {

TEST(Help, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("", 10), "");
  EXPECT_EQ(wrapped("one two three", 13), "one two three");
  EXPECT_EQ(wrapped("one two three", 12), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 7, " \\\n  "), "one two \\\n  three");
  EXPECT_EQ(wrapped("one two three", 6), "one\ntwo\nthree");
  EXPECT_EQ(wrapped("a incomprehensible b", 4), "a\nincomprehensible\nb") << "a word is not cut";
  EXPECT_EQ(wrapped("one\ntwo three\nfour five", 9), "one\ntwo three\nfour five") << "line breaks of the text";
  EXPECT_EQ(wrapped("one\ntwo three\nfour five", 8), "one\ntwo\nthree\nfour\nfive");
}

} // namespace
} // namespace shardc
