// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Check.h"
#include "tests/plan/PlanBytes.h"
#include "tests/plan/SmallPlan.h"
#include "tests/plan/Views.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

std::string parseError(StringRef bytes) {
  Expected<plan::Plan> plan = parsePlan(bytes, "p.plan");
  return plan ? "" : toString(plan.takeError());
}

TEST(Serialize, RoundTrip) {
  plan::Plan plan = twoStreamPlan();
  std::string bytes = serializePlan(plan);
  Expected<plan::Plan> back = parsePlan(bytes, "p.plan");
  ASSERT_TRUE(bool(back)) << toString(back.takeError());
  EXPECT_EQ(serializePlan(*back), bytes);
  std::string text, textBack;
  raw_string_ostream os(text), osBack(textBack);
  printPlan(plan, os);
  printPlan(*back, osBack);
  EXPECT_EQ(text, textBack);
}

TEST(Serialize, FilesRoundTrip) {
  SmallString<128> path;
  ASSERT_FALSE(sys::fs::createTemporaryFile("shardc", "plan", path));
  ASSERT_FALSE(bool(writePlan(smallPlan(), path)));
  Expected<plan::Plan> back = readPlan(path);
  ASSERT_TRUE(bool(back)) << toString(back.takeError());
  EXPECT_EQ(serializePlan(*back), serializePlan(smallPlan()));
  sys::fs::remove(path);
  Expected<plan::Plan> gone = readPlan(path);
  ASSERT_FALSE(bool(gone));
  EXPECT_EQ(toString(gone.takeError()),
            (path + ": cannot be read: No such file or directory\nhint: check the path, and whether you may read it").str());
}

TEST(Serialize, EveryFlippedByteIsRefused) {
  std::string good = serializePlan(smallPlan());
  for (size_t i = 0; i < good.size(); ++i)
    for (unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] ^= char(flip);
      std::string error = parseError(bad);
      EXPECT_NE(error.find(i < 8 ? "p.plan: not a plan file" : "the checksum is wrong"),
                std::string::npos)
          << "byte " << i << ": " << error;
    }
}

TEST(Serialize, EveryTruncationIsRefused) {
  std::string good = serializePlan(smallPlan());
  for (size_t i = 0; i < good.size(); ++i)
    EXPECT_NE(parseError(StringRef(good).take_front(i)), "") << i;
}

TEST(Serialize, EveryFlippedByteWithARightChecksumIsRefusedOrSound) {
  std::string good = serializePlan(smallPlan());
  unsigned refused = 0, sound = 0;
  for (size_t i = 0; i + 32 < good.size(); ++i)
    for (unsigned flip = 1; flip < 256; flip += flip < 4 ? 1 : 36) {
      std::string bad = good;
      bad[i] ^= char(flip);
      Expected<plan::Plan> plan = parsePlan(repaired(bad), "p.plan");
      if (!plan) {
        consumeError(plan.takeError());
        ++refused;
        continue;
      }
      // All that is printed must cope with whatever was let through; of so many, each view has its turn.
      printView(*plan, sound++);
    }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(sound, 100u); // names and costs may be anything
}

TEST(Serialize, AnotherVersionIsSaid) {
  std::string bytes = serializePlan(smallPlan());
  bytes[8] = 7;
  EXPECT_NE(parseError(repaired(bytes)).find("p.plan: plan of another version: got 7, wanted 1"),
            std::string::npos);
}

TEST(Serialize, LengthMustFit) {
  std::string bytes = serializePlan(smallPlan());
  bytes[12] ^= 1;
  EXPECT_NE(parseError(repaired(bytes)).find("length: got"), std::string::npos);
}

} // namespace
} // namespace shardc
