// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "tests/plan/SmallPlan.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

std::string shortfall(const plan::Plan &plan, uint64_t budget) {
  std::string out;
  raw_string_ostream os(out);
  printShortfall(plan, budget, os);
  return out;
}

/// Sums of the exact bytes in the tables; the first line's first.
std::vector<uint64_t> sums(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  auto number = [](StringRef word) {
    std::string digits = word.str();
    erase(digits, ',');
    uint64_t value = 0;
    EXPECT_TRUE(to_integer(digits, value)) << word.str();
    return value;
  };
  std::vector<uint64_t> result = {number(lines[0].split(": ").second.split(' ').first)};
  for (StringRef line : lines) {
    if (line.ltrim().starts_with("bytes "))
      result.push_back(0);
    else if (result.size() > 1 && line.contains('%'))
      result.back() += number(line.ltrim().split(' ').first);
  }
  return result;
}

/// The small plan with more buffers than are listed by name.
plan::Plan crowded() {
  plan::Plan plan = smallPlan();
  for (int i = 0; i < 20; ++i) {
    plan::Buffer &buffer = *plan.add_buffers();
    buffer.set_name("extra_" + std::string(1, char('a' + i)));
    buffer.set_kind(i % 2 ? plan::COMMUNICATION : plan::ACTIVATION);
    buffer.set_bytes(1000 * (i + 1));
    buffer.set_first(i < 15 ? 1 : 3);
    buffer.set_last(i < 15 ? 2 : 4);
  }
  return plan;
}

TEST(ReportBudget, ListedBytesAddUpToThePeak) {
  for (const plan::Plan &plan : {smallPlan(), crowded()}) {
    // Naively: all positions, all buffers.
    uint64_t peak = 0;
    for (uint64_t position = 0; position < 7; ++position) {
      uint64_t live = 0;
      for (const plan::Buffer &b : plan.buffers())
        live += b.persistent() || (b.first() <= position && position < b.last())
                    ? (b.bytes() + 255) / 256 * 256
                    : 0;
      peak = std::max(peak, live);
    }
    std::string out = shortfall(plan, 1);
    EXPECT_EQ(sums(out), std::vector<uint64_t>(3, peak)) << out;
    SmallVector<StringRef> lines;
    StringRef(out).split(lines, '\n');
    for (StringRef line : lines)
      EXPECT_LE(columnsOf(line), screenColumns()) << line.str();
  }
}

TEST(ReportBudget, SaysWhereAndWhetherPackingHelps) {
  plan::Plan plan = crowded();
  plan.add_strings("encoder.block.7");
  command(plan, 0, 1).set_layer(uint32_t(plan.strings_size() - 1));
  plan.set_floor_bytes(10);
  plan.mutable_spaces(0)->set_bytes(200000);
  std::string out = shortfall(plan, 1000);
  EXPECT_NE(out.find("at train command 1 (forward), fused, layer encoder.block.7"), std::string::npos) << out;
  EXPECT_NE(out.find(" 15,104  "), std::string::npos) << out; // extra_o
  EXPECT_NE(out.find("1    14.8 KiB  activation     extra_o"), std::string::npos) << out;
  EXPECT_NE(out.find("       13                             all others"), std::string::npos) << out;
  EXPECT_NE(out.find("No packing can help: so much lives at once, and 10 B lies beside it."),
            std::string::npos)
      << out;
  uint64_t peak = findPeak(plan, 0).bytes;
  out = shortfall(plan, peak + 10);
  EXPECT_NE(out.find("It would fit, were packing perfect"), std::string::npos) << out;
  EXPECT_NE(shortfall(plan, peak + 9).find("No packing can help"), std::string::npos);
}

plan::Plan withParameters(unsigned ranks, unsigned zero,
                          std::initializer_list<std::pair<const char *, uint64_t>> parameters) {
  plan::Plan plan;
  plan.set_ranks(ranks);
  plan.set_zero(zero);
  for (auto &[name, elements] : parameters) {
    plan::Parameter &p = *plan.add_parameters();
    p.set_name(name);
    p.add_dims(int64_t(elements));
  }
  return plan;
}

/// What DeepSpeed prints, as published: of t5-small on one GPU 1.08 GB at stage 3; and 0.19's functions
/// called by hand.
TEST(ReportBudget, DeepSpeedsFormulas) {
  auto t5Small = {std::pair("shared.weight", uint64_t(16449530)),
                  {"shared.bias", 6},
                  {"encoder.0.weight", 15000000},
                  {"encoder.1.weight", 15000000},
                  {"encoder.2.weight", 14057088}};
  EXPECT_EQ(deepSpeedEstimate(withParameters(1, 3, t5Small)), 1154917376u); // 1.0756 GiB
  EXPECT_EQ(deepSpeedEstimate(withParameters(2, 2, t5Small)), 665572864u);
  EXPECT_EQ(deepSpeedEstimate(withParameters(8, 3, t5Small)), 201938048u);
  EXPECT_EQ(deepSpeedEstimate(withParameters(7, 2, {{"a.weight", 10}})), 20u + 25u); // int(180 / 7)
  EXPECT_EQ(deepSpeedEstimate(withParameters(2, 0, t5Small)), std::nullopt);
  EXPECT_EQ(deepSpeedEstimate(withParameters(2, 1, t5Small)), std::nullopt);
}

TEST(ReportBudget, EstimateIsATableThatFits) {
  std::vector<plan::Plan> plans(2, crowded());
  plans[0].set_ranks(8);
  plans[0].set_zero(3);
  plans[0].set_floor_bytes(uint64_t(200) << 30);
  plans[1].set_floor_bytes(uint64_t(3) << 30);
  for (plan::Plan &plan : plans)
    plan.set_predicted_ms(83.5);
  std::string out;
  raw_string_ostream os(out);
  printEstimate(plans, uint64_t(24) << 30, os);
  SmallVector<StringRef> lines;
  StringRef(out).split(lines, '\n');
  for (StringRef line : lines)
    EXPECT_LE(columnsOf(line), screenColumns()) << line.str();
  EXPECT_TRUE(lines[3].ltrim().starts_with("8     3")) << out;
  EXPECT_TRUE(lines[3].contains(" 200 GiB  no ")) << out;
  EXPECT_TRUE(lines[4].contains("3.00 GiB  yes ")) << out;
}

} // namespace
} // namespace shardc
