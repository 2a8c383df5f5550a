// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Groups.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "tests/plan/RankPlan.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

std::string diff(const plan::Plan &before, const plan::Plan &after) {
  std::string out;
  raw_string_ostream os(out);
  printDiff(before, after, "a.plan", "b.plan", os);
  SmallVector<StringRef> lines;
  StringRef(out).split(lines, '\n');
  for (StringRef line : lines)
    EXPECT_LE(columnsOf(line), screenColumns()) << line.str();
  return out;
}

/// Spaces count once: columns are as wide as their contents.
std::string squeezed(StringRef text) {
  std::string out;
  for (char c : text)
    if (c != ' ' || out.empty() || out.back() != ' ')
      out += c;
  return out;
}

void expectParts(const std::string &out, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(squeezed(out).find(part), std::string::npos) << part << "\nin\n" << out;
}

TEST(Diff, OfEqualPlansIsNothing) {
  std::string out = diff(smallPlan(), smallPlan());
  expectParts(out, {"before: a.plan", "after: b.plan", "options\n the same", "of the whole plan\n none"});
  EXPECT_EQ(out.find('+'), std::string::npos) << out;
  EXPECT_EQ(out.find(" -"), std::string::npos) << out;
}

TEST(Diff, SaysWhatCameWentAndChanged) {
  plan::Plan before = smallPlan(), after = smallPlan();
  for (uint32_t b : {kM, kY})
    after.mutable_buffers(b)->set_layer(1);
  after.mutable_buffers(kY)->set_bytes(4000); // 4096 as counted: 3840 more
  after.mutable_buffers(kSquares)->set_name("cubes");
  after.mutable_spaces(0)->set_bytes(6144);
  after.set_batch(4);
  after.set_predicted_ms(2);
  expectParts(diff(before, after),
              {" batch 2 4", "arena 2.25 KiB 6.00 KiB +3.75 KiB", "predicted step 0.00 us 2.00 ms +2.00 ms",
               "peak before: train command 1 (forward), fused", "activation 512 B 4.25 KiB +3.75 KiB",
               "parameter 256 B 256 B same", "layer.* 0 B 4.25 KiB +4.25 KiB", "scalar 512 B 512 B same",
               // One y of two was moved into a layer and grew.
               "+4.00 KiB came 0 -> 1 activation layer.*: y", "-256 B changed 2 -> 1 activation y",
               "-256 B went 1 -> 0 activation squares", "+256 B came 0 -> 1 activation cubes"});
}

TEST(Diff, OfStagesFitsTheScreenBothWays) {
  for (unsigned a = 0; a <= 3; ++a)
    for (unsigned b = 0; b <= 3; ++b)
      expectParts(diff(rankPlan(4, a), rankPlan(4, b, 3)), {"accumulate 1 3"});
}

TEST(Groups, TakeNumbersOutOfNames) {
  EXPECT_EQ(namePattern("encoder.block.12.layer.0.h"), "encoder.block.*.layer.*.h");
  EXPECT_EQ(namePattern("wi_0"), "wi_*");
  EXPECT_EQ(namePattern("conv2d"), "conv2d"); // a part of the word
  EXPECT_EQ(namePattern("7"), "*");
  EXPECT_EQ(namePattern(""), "");
}

TEST(Groups, OfLayersAddUp) {
  plan::Plan plan = smallPlan();
  plan.add_strings("layer.1");
  plan.mutable_buffers(kM)->set_layer(1);
  plan.mutable_buffers(kY)->set_layer(1);
  plan.mutable_buffers(kSquares)->set_layer(2);
  const uint32_t kBuffers[] = {kX, kM, kY, kSquares};
  std::vector<LayerGroup> layers = layersOf(plan, kBuffers);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].name, "layer.*");
  EXPECT_EQ(layers[0].bytes, 768u);
  EXPECT_EQ(layers[0].persistent, 256u);
  EXPECT_EQ(layers[1].name, "input"); // what has no layer goes by what it is
  EXPECT_EQ(layers[1].bytes, 256u);
  std::vector<LayerGroup> single = singleLayersOf(plan, kBuffers);
  ASSERT_EQ(single.size(), 3u);
  uint64_t bytes = 0;
  for (const LayerGroup &layer : single) {
    bytes += layer.bytes;
    if (layer.name == "layer.0") {
      EXPECT_EQ(layer.bytes, 512u);
    }
  }
  EXPECT_EQ(bytes, 1024u);
}

TEST(Groups, AtThePeakAddUpToTheBound) {
  for (unsigned stage = 0; stage <= 3; ++stage) {
    plan::Plan plan = rankPlan(4, stage, 2);
    std::vector<uint32_t> buffers = buffersAtPeak(plan);
    uint64_t byLayer = 0, byName = 0;
    for (const LayerGroup &layer : layersOf(plan, buffers))
      byLayer += layer.bytes;
    for (const BufferGroup &group : groupsOf(plan, buffers))
      byName += group.bytes;
    EXPECT_EQ(byLayer, lowerBoundBytes(plan));
    EXPECT_EQ(byName, lowerBoundBytes(plan));
  }
}

} // namespace
} // namespace shardc
