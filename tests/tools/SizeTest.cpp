// SPDX-License-Identifier: Apache-2.0
#include "tools/common/CommandLine.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

int64_t size(StringRef text) {
  Expected<int64_t> bytes = parseSize(text);
  if (bytes)
    return *bytes;
  consumeError(bytes.takeError());
  return -1;
}

TEST(Size, Units) {
  EXPECT_EQ(size("24GiB"), 25769803776);
  EXPECT_EQ(size("1.5 KiB"), 1536);
  EXPECT_EQ(size("2kb"), 2000);
  EXPECT_EQ(size("3MB"), 3000000);
  EXPECT_EQ(size("1TiB"), 1099511627776);
  EXPECT_EQ(size("7"), 7);
  EXPECT_EQ(size("0B"), 0);
}

TEST(Size, Refused) {
  for (StringRef text :
       {"", "GiB", "-1GiB", "1.2.3GiB", "12 parsecs", "9e9GiB", "99999999999GiB", "1GiB1"})
    EXPECT_EQ(size(text), -1) << text.str();
  EXPECT_EQ(toString(parseSize("8Gi").takeError()),
            "size: got '8Gi', wanted a number with a unit, such as 24GiB\nhint: units are B KiB "
            "MiB GiB TiB KB MB GB TB");
}

TEST(Size, Format) {
  EXPECT_EQ(formatSize(0), "0 B");
  EXPECT_EQ(formatSize(1023), "1023 B");
  EXPECT_EQ(formatSize(1536), "1.50 KiB");
  EXPECT_EQ(formatSize(25769803776), "24.0 GiB");
  EXPECT_EQ(formatSize(1000 << 10), "0.98 MiB");
  EXPECT_EQ(formatSize(500 << 20), "500 MiB");
  EXPECT_EQ(formatSize(int64_t(5) << 50), "5120 TiB");
}

} // namespace
} // namespace shardc
