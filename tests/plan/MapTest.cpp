// SPDX-License-Identifier: Apache-2.0
// Memory maps: each number is computed a second time, position by position.
#include "ir/plan/map/Map.h"
#include "ir/plan/Peak.h"
#include "ir/plan/map/Curve.h"
#include "ir/plan/map/Parts.h"
#include "ir/plan/map/Pile.h"
#include "ir/plan/map/Scene.h"
#include "ir/plan/map/Story.h"
#include "tests/plan/PlanBytes.h"
#include "tests/plan/RankPlan.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

uint64_t positionsOf(const plan::Plan &plan) {
  uint64_t count = 0;
  for (const plan::Program &program : plan.programs())
    count += uint64_t(program.commands_size());
  return count;
}

bool lives(const plan::Buffer &b, uint64_t position) {
  return b.persistent() || (b.first() <= position && position < b.last());
}

std::vector<plan::Plan> somePlans() {
  return {smallPlan(), twoStreamPlan(), regionPlan(), rankPlan(4, 3, 2), rankPlan(2, 1, 3)};
}

TEST(Map, TheCurveIsTheSumOfWhatLives) {
  for (const plan::Plan &plan : somePlans()) {
    std::vector<map::Live> curve = map::liveCurve(plan, 0);
    ASSERT_EQ(curve.front().position, 0u);
    uint64_t most = 0;
    size_t at = 0;
    for (uint64_t p = 0; p < positionsOf(plan); ++p) {
      while (at + 1 < curve.size() && curve[at + 1].position <= p)
        ++at;
      std::array<uint64_t, map::kKinds> wanted{};
      uint64_t total = 0;
      for (const plan::Buffer &b : plan.buffers())
        if (lives(b, p)) {
          wanted[b.kind()] += (b.bytes() + 255) / 256 * 256;
          total += (b.bytes() + 255) / 256 * 256;
        }
      EXPECT_EQ(curve[at].bytes, wanted) << "position " << p;
      EXPECT_EQ(curve[at].total(), total);
      most = std::max(most, total);
    }
    EXPECT_EQ(most, plan.spaces(0).lower_bound());
  }
}

TEST(Map, WhatIsKeptGetsAQuarterOfTheHeight) {
  plan::Plan plan = smallPlan();
  map::AddressAxis axis(plan, 0);
  EXPECT_EQ(axis(0), 0);
  EXPECT_EQ(axis(plan.spaces(0).bytes()), 1);
  double kept = 0, before = 0;
  for (uint64_t at = 256; at <= plan.spaces(0).bytes(); at += 256) {
    EXPECT_GT(axis(at), before);
    bool always = any_of(plan.buffers(), [&](const plan::Buffer &b) {
      return b.persistent() && b.offset() < at && at - 256 < b.offset() + alignedBytes(b);
    });
    kept += always ? axis(at) - before : 0;
    before = axis(at);
  }
  EXPECT_NEAR(kept, map::AddressAxis::kAlwaysShare, 1e-12);
  EXPECT_FALSE(axis.isLinear());
}

TEST(Map, AnAxisOfWhatComesAndGoesIsLinear) {
  plan::Plan plan = smallPlan();
  for (plan::Buffer &b : *plan.mutable_buffers())
    b.set_persistent(false);
  map::AddressAxis axis(plan, 0);
  EXPECT_TRUE(axis.isLinear());
  EXPECT_DOUBLE_EQ(axis(plan.spaces(0).bytes() / 2), 0.5);
}

TEST(Map, BandsCoverAllCommandsInOrder) {
  for (const plan::Plan &plan : somePlans()) {
    std::vector<Life> lives = livesOf(plan);
    map::Parts parts = map::partsOf(plan, lives);
    uint64_t at = 0;
    for (const map::Band &band : map::bandsOf(plan, parts)) {
      EXPECT_EQ(band.first, at);
      EXPECT_LT(band.first, band.last);
      ASSERT_LT(band.part, parts.names.size());
      at = band.last;
    }
    EXPECT_EQ(at, positionsOf(plan));
  }
}

/// Adds a string to the plan and gives a command that place.
void setPlace(plan::Plan &plan, int program, int index, const char *place) {
  command(plan, program, index).set_place(uint32_t(plan.strings_size()));
  plan.add_strings(place);
}

TEST(Map, PartsAreLayersOrPlacesWithoutTheWrapper) {
  plan::Plan plan = smallPlan();
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Command &c : *program.mutable_commands())
      c.set_layer(0);
  command(plan, 0, 0).set_layer(1); // "layer.0"
  setPlace(plan, 0, 1, "/m/lm_head/MatMul");
  setPlace(plan, 0, 2, "/m/Mul_4");
  std::vector<Life> lives = livesOf(plan);
  map::Parts parts = map::partsOf(plan, lives);
  EXPECT_EQ(parts.names[parts.ofCommand[0]], "layer.0");
  EXPECT_EQ(parts.names[parts.ofCommand[1]], "lm_head");
  EXPECT_EQ(parts.names[parts.ofCommand[2]], "Mul_4");
  setPlace(plan, 0, 2, "/m/layer.0/norm/Mul"); // under a layer that there is
  plan.mutable_buffers(kSquares)->set_layer(0);
  plan.mutable_buffers(kSquares)->set_name("layer.0.norm.Mul_output_0");
  parts = map::partsOf(plan, lives);
  EXPECT_EQ(parts.names[parts.ofCommand[2]], "layer.0");
  EXPECT_EQ(parts.names[parts.ofBuffer[kSquares]], "layer.0");
  setPlace(plan, 0, 2, "/other/Mul_4"); // now there is no wrapper
  parts = map::partsOf(plan, lives);
  EXPECT_EQ(parts.names[parts.ofCommand[1]], "m.lm_head");
  plan.mutable_parameters(0)->set_name("lm_head.weight"); // but this tells that there is
  parts = map::partsOf(plan, lives);
  EXPECT_EQ(parts.names[parts.ofCommand[1]], "lm_head");
  EXPECT_EQ(parts.names[parts.ofCommand[2]], "other");
}

TEST(Map, TheStoryAddsUpAndFoldsLayers) {
  plan::Plan plan = smallPlan();
  plan.add_strings("block.7");
  plan.mutable_buffers(kY)->set_layer(1); // layer.0
  plan.set_strings(1, "block.3");
  plan.mutable_buffers(kSquares)->set_layer(uint32_t(plan.strings_size() - 1)); // block.7
  for (const plan::Plan &p : {plan, smallPlan(), rankPlan(4, 3, 2)}) {
    std::vector<Life> lives = livesOf(p);
    map::Parts parts = map::partsOf(p, lives);
    map::Story story = map::storyOf(p, 0, parts, lives, map::bandsOf(p, parts));
    EXPECT_EQ(story.bytes, p.spaces(0).lower_bound());
    EXPECT_EQ(story.position, findPeak(p, 0).position);
    uint64_t sum = 0, buffers = 0;
    for (const map::PeakGroup &group : story.groups) {
      sum += group.total;
      buffers += group.buffers;
      EXPECT_FALSE(group.why.empty());
    }
    EXPECT_EQ(sum, story.bytes);
    EXPECT_EQ(buffers, findPeak(p, 0).buffers.size());
  }
}

TEST(Map, ThePileIsThePeakInPieces) {
  for (const plan::Plan &plan : somePlans()) {
    map::Scene scene(plan, 0);
    std::vector<map::Piece> pieces = map::pileOf(scene);
    std::array<uint64_t, map::kKinds> bytes{};
    uint64_t height = 0;
    for (const map::Piece &piece : pieces) {
      EXPECT_EQ(piece.begin, height);
      EXPECT_LT(piece.begin, piece.end);
      bytes[piece.kind] += piece.end - piece.begin;
      height = piece.end;
    }
    EXPECT_EQ(height, plan.spaces(0).lower_bound());
    auto peak =
        llvm::max_element(scene.curve, [](auto &a, auto &b) { return a.total() < b.total(); });
    EXPECT_EQ(bytes, peak->bytes);
  }
}

TEST(Map, LabelsOfLayersGetShorter) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(map::labelsOf("deberta.encoder.layer"), (Labels{"deberta.encoder.layer", "encoder.layer", "encoder", "layer"}));
  EXPECT_EQ(map::labelsOf("encoder.block"), (Labels{"encoder.block", "encoder.block", "encoder", "block"}));
  EXPECT_EQ(map::labelsOf("shared"), (Labels{"shared"}));
}

TEST(Map, ThinPiecesShareALine) {
  auto piece = [](uint64_t begin, uint64_t end, const char *name) {
    return map::Piece{begin, end, name, plan::ACTIVATION, false};
  };
  // Three thin layers, a thick one, three that stay too thin for a line of their own.
  std::vector<map::Piece> pieces = {
      piece(0, 5, "enc.0"),   piece(5, 10, "enc.1"), piece(10, 15, "enc.2"), piece(15, 45, "enc.3"),
      piece(45, 49, "dec.0"), piece(49, 53, "norm"), piece(53, 57, "dec.1")};
  std::vector<ArrayRef<map::Piece>> lines = map::linesOf(
      pieces, [](uint64_t height) { return 100.0 - double(height); }, 10);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(map::describe(lines[0]), "15 B  enc");
  EXPECT_EQ(map::describe(lines[1]), "30 B  enc.3");
  EXPECT_EQ(map::describe(lines[2]), "12 B  dec, norm");
}

TEST(Map, LongNamesLoseTheirBeginningsWhileTheyStayApart) {
  auto text = [](const char *a, const char *b) {
    return map::describe(
        {{0, 10, a, plan::ACTIVATION, false}, {10, 20, b, plan::ACTIVATION, false}});
  };
  EXPECT_EQ(text("encoder.block", "decoder.block"), "20 B  encoder.block, decoder.block");
  EXPECT_EQ(text("model.long_prefix.query", "model.long_prefix.key"),
            "20 B  query, key");
  EXPECT_EQ(text("a_long_encoder.block", "a_long_decoder.block"),
            "20 B  a_long_encode.._decoder.block");
}

/// The small plan with everything in names that a file format could trip over.
plan::Plan hostile() {
  plan::Plan plan = smallPlan();
  plan.mutable_buffers(kY)->set_name("</script><b>&\"',\n\x01\xc3\xa9");
  plan.set_strings(1, "]]><!--</script>,\r\n");
  plan.mutable_model()->set_path("<svg/onload=x>.onnx");
  return plan;
}

TEST(Map, TheSummaryIsWholeInPictures) {
  plan::Plan plan = rankPlan(4, 3, 2);
  for (std::string &text : *plan.mutable_strings())
    if (!text.empty())
      text += " of the part with the long name";
  const std::string summary = map::Scene(plan, 0).story.summary;
  ASSERT_GT(summary.size(), 165u) << "wanted more than a line: " << summary;
  std::string svg;
  raw_string_ostream os(svg);
  printMapSvg(plan, os);
  StringRef rest = StringRef(svg).split("Why:").second;
  for (StringRef words = summary; !words.empty();) {
    auto [word, others] = words.split(' ');
    const size_t at = rest.find(word);
    ASSERT_LT(at, 60u) << word.str(); // behind the one before, or in the next line
    rest = rest.drop_front(at + word.size());
    words = others;
  }
}

TEST(Map, ALongTitleNamesTheLayerRatherThanTheCommand) {
  plan::Plan plan = smallPlan();
  std::string layer(70, 'x');
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Command &c : *program.mutable_commands()) {
      c.set_layer(uint32_t(plan.strings_size()));
      c.set_kernel("a_kernel_of_a_long_name");
    }
  plan.add_strings(layer);
  std::string svg;
  raw_string_ostream os(svg);
  printMapSvg(plan, os);
  StringRef title = StringRef(svg).split("Peak: ").second.split("</text>").first;
  EXPECT_TRUE(title.contains(" of " + layer)) << title.str();
  EXPECT_FALSE(title.contains("command")) << title.str();
}

TEST(Map, NamesCannotBreakOutOfPictures) {
  plan::Plan plan = hostile();
  std::string svg = printed(printMapSvg, plan), html = printed(printMapHtml, plan);
  EXPECT_EQ(StringRef(svg).count("<svg"), 1u);
  EXPECT_EQ(StringRef(svg).count("</script>"), 0u);
  EXPECT_TRUE(
      all_of(svg, [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; }));
  EXPECT_EQ(StringRef(html).count("</script>"), 2u); // the data's and the code's
  EXPECT_TRUE(StringRef(html).ends_with("</html>\n"));
}

TEST(Map, NoFieldOfACsvHasACommaOrANewline) {
  plan::Plan plan = hostile();
  std::string csv = printed([](auto &p, auto &os) { printCsv(p, 0, os); }, plan);
  SmallVector<StringRef> lines, fields;
  StringRef(csv).rtrim('\n').split(lines, '\n');
  EXPECT_EQ(lines.front(), "id,lower,upper,size,offset,kind,layer,name");
  EXPECT_EQ(lines.size(),
            1u + size_t(count_if(plan.buffers(), [](auto &b) { return b.bytes() > 0; })));
  for (StringRef line : lines) {
    fields.clear();
    line.split(fields, ',');
    EXPECT_EQ(fields.size(), 8u) << line.str();
  }
}

TEST(Map, RegionsAreDrawnByName) {
  plan::Plan plan = regionPlan();
  std::string svg = printed(printMapSvg, plan), html = printed(printMapHtml, plan);
  EXPECT_TRUE(StringRef(svg).contains(">persistent: 1.50 KiB<"));
  EXPECT_TRUE(StringRef(svg).contains(">step: 768 B<"));
  ASSERT_EQ(plan.spaces(0).regions_size(), 2);
  for (const plan::Region &region : plan.spaces(0).regions()) {
    EXPECT_TRUE(StringRef(html).contains("{\"name\":\"" + region.name() +
                                         "\",\"offset\":" + utostr(region.offset())));
  }
}

TEST(Map, PicturesAreTheSameEachTime) {
  plan::Plan plan = rankPlan(4, 3, 2);
  EXPECT_EQ(printed(printMapSvg, plan), printed(printMapSvg, plan));
  EXPECT_EQ(printed(printMapHtml, plan), printed(printMapHtml, plan));
}

TEST(Map, APlanWithoutCommandsHasPictures) {
  plan::Plan plan;
  plan.add_strings("");
  plan.add_spaces();
  EXPECT_TRUE(StringRef(printed(printMapSvg, plan)).contains("</svg>"));
  EXPECT_TRUE(StringRef(printed(printMapHtml, plan)).contains("\"spaces\""));
}

} // namespace
} // namespace shardc
