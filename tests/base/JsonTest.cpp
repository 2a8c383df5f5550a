// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Json.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

std::string judge(StringRef text) {
  auto object = parseJsonObject(text);
  return object ? "" : toString(object.takeError());
}

TEST(Json, ReadsWhatLlvmReads) {
  auto object = parseJsonObject(R"({"a": [1, {"b": "}{][\":"}], "c": {"a": 2, "b": 3}})");
  ASSERT_TRUE(bool(object)) << toString(object.takeError());
  EXPECT_EQ(object->size(), 2u);
  EXPECT_EQ(object->getObject("c")->getInteger("b"), 3);
  EXPECT_EQ(judge("{}"), "");
}

TEST(Json, RefusesWhatIsNoObject) {
  EXPECT_EQ(judge("[]"), "got another JSON value, wanted an object");
  EXPECT_EQ(judge("{"), "not JSON: [1:1, byte=1]: Expected object key");
  EXPECT_EQ(judge(""), "not JSON: [1:0, byte=0]: Unexpected EOF");
}

TEST(Json, RefusesWhatWouldEndTheProcess) {
  for (char open : {'[', '{'})
    EXPECT_EQ(judge(std::string(1000000, open)), "nested too deep: got more than 8 levels, wanted at most 8");
  EXPECT_EQ(judge("{\"a\": " + std::string(7, '[') + std::string(7, ']') + "}"), "");
  EXPECT_EQ(judge("{\"a\": " + std::string(8, '[') + std::string(8, ']') + "}"),
            "nested too deep: got more than 8 levels, wanted at most 8");
}

TEST(Json, RefusesANameThatIsThereTwice) {
  EXPECT_EQ(judge(R"({"a": 1, "b": 2, "a": 3})"), "a name is there twice: got 3 entries with 2 names");
}

} // namespace
} // namespace shardc
