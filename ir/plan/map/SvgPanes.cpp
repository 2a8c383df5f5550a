// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Colors.h"
#include "ir/plan/map/Pile.h"
#include "ir/plan/map/SvgPicture.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;

namespace shardc::map {
namespace {

double snapped(double pixel) { return std::round(2 * pixel) / 2; }

class Panes {
public:
  Panes(const Scene &scene, SvgWriter &svg) : scene_(scene), svg_(svg) {}

  /// Live bytes over time, by kind on top of each other; each pixel shows the highest moment in it.
  void curve(double y) {
    double bottom = y + kCurveHeight, most = double(std::max<uint64_t>(1, scene_.space().bytes()));
    auto height = [&](uint64_t bytes) {
      return bottom - (kCurveHeight - 8) * double(bytes) / most;
    };
    svg_.rect({kLeft, y, kMapWidth, kCurveHeight}, kFree);
    std::vector<const Live *> highest(size_t(kMapWidth), nullptr);
    for (size_t i = 0; i < scene_.curve.size(); ++i) {
      uint64_t end = i + 1 < scene_.curve.size() ? scene_.curve[i + 1].position : scene_.positions;
      auto from = size_t(column(scene_.curve[i].position) - kLeft),
           to = size_t(std::ceil(column(end) - kLeft));
      for (size_t x = from; x < std::max(to, from + 1) && x < highest.size(); ++x)
        if (!highest[x] || highest[x]->total() < scene_.curve[i].total())
          highest[x] = &scene_.curve[i];
    }
    // From the top of the pile down, each over what is below it.
    for (size_t k = std::size(kKindColors); k-- > 0;) {
      std::string shape = "M" + pixels(kLeft) + " " + pixels(bottom), before;
      bool any = false;
      for (size_t x = 0; x < highest.size(); ++x) {
        uint64_t bytes = 0;
        for (size_t below = 0; below <= k; ++below)
          bytes += highest[x]->bytes[kKindColors[below].kind];
        any |= highest[x]->bytes[kKindColors[k].kind] != 0;
        std::string level = pixels(height(bytes));
        if (level != before)
          shape += (x ? "H" + pixels(kLeft + double(x)) : std::string()) + "V" + level;
        before = level;
      }
      if (any)
        svg_.path(shape + "H" + pixels(kLeft + kMapWidth) + "V" + pixels(bottom) + "z",
                  kKindColors[k].color);
    }
    svg_.line(kLeft, height(uint64_t(most)), kLeft + kMapWidth, height(uint64_t(most)), kInk,
              /*dashed=*/true);
    svg_.text(kLeft - 6, height(uint64_t(most)) + 4, bytesText(uint64_t(most)), "s g",
              SvgWriter::End);
    svg_.text(kLeft - 6, bottom, "0", "s g", SvgWriter::End);
    svg_.text(kPile, height(uint64_t(most)) + 4, "arena: " + bytesText(uint64_t(most)), "s");
    svg_.text(kPile, y + 30, "live bytes, by kind", "s g");
    if (!scene_.space().method().empty())
      svg_.text(kPile, y + 46, "packed by: " + shortened(printable(scene_.space().method()), 30),
                "s g");
    double x = middle(scene_.story.position);
    svg_.text(x, y - 6, "peak " + bytesText(scene_.story.bytes), "s b r",
              x < kLeft + 60               ? SvgWriter::Start
              : x > kLeft + kMapWidth - 60 ? SvgWriter::End
                                           : SvgWriter::Middle);
  }

  /// Which program and pass, which layers, which layer.
  double strips(double y) {
    bool several = scene_.plan.programs_size() > 3; // micro-steps apart
    auto strip = [&](auto key, auto label, auto color) {
      for (size_t i = 0; i < scene_.bands.size();) {
        size_t end = i;
        while (end < scene_.bands.size() && key(scene_.bands[end]) == key(scene_.bands[i]))
          ++end;
        double from = column(scene_.bands[i].first), to = column(scene_.bands[end - 1].last);
        svg_.rect({from, y, to - from, kStrip - 1}, color(scene_.bands[i]));
        std::vector<std::string> texts = label(scene_.bands[i]); // the first that fits
        auto text =
            find_if(texts, [&](auto &t) { return !t.empty() && textWidth(t, 10) + 2 < to - from; });
        if (text != texts.end())
          svg_.text((from + to) / 2, y + 12, *text, "s", SvgWriter::Middle);
        i = end;
      }
      y += kStrip;
    };
    strip([](const Band &b) { return std::pair(b.program, b.phase); },
          [&](const Band &b) -> std::vector<std::string> {
            std::string pass = phaseName(scene_.plan, b).str();
            StringRef program = scene_.plan.programs(int(b.program)).name();
            if (!several || !program.starts_with("train"))
              return {pass};
            return {printable(program) + ": " + pass, pass};
          },
          [&](const Band &b) {
            constexpr const char *kColors[] = {"#cfe0f1", "#f3d9c6", "#d6e8cf"};
            return scene_.plan.programs(int(b.program)).name() == "eval" ? "#e3e3e3"
                                                                         : kColors[b.phase];
          });
    strip(
        [&](const Band &b) {
          return std::tuple(b.program, b.phase, stemOf(scene_.parts.names[b.part]));
        },
        [&](const Band &b) { return labelsOf(stemOf(scene_.parts.names[b.part])); },
        [](const Band &b) { return "#e9edf0"; });
    strip([](const Band &b) { return std::tuple(b.program, b.phase, b.part); },
          [&](const Band &b) {
            StringRef name = scene_.parts.names[b.part];
            return std::vector{name.drop_front(name.rtrim("0123456789").size()).str()};
          },
          [](const Band &b) { return b.part % 2 ? "#cdd5dc" : "#dfe5ea"; });
    const Band &band = bandAt(scene_.bands, scene_.story.position);
    svg_.text(kPile, y - 2 * kStrip - 5, phaseName(scene_.plan, band).str() + " of", "s r");
    svg_.text(kPile, y - kStrip - 3, shortened(scene_.story.part, 36), "s b r");
    return y + 8;
  }

  void map(double y) {
    auto level = [&](uint64_t address) { return y + kMapHeight * (1 - scene_.axis(address)); };
    svg_.rect({kLeft, y, kMapWidth, kMapHeight}, kFree);
    std::string shapes[kKinds][2];
    for (int i = 0; i < scene_.plan.buffers_size(); ++i) {
      const plan::Buffer &b = scene_.plan.buffers(i);
      if (b.space() != scene_.index || !b.bytes() || (!b.persistent() && b.first() >= b.last()))
        continue;
      double x0 = snapped(b.persistent() ? kLeft : column(b.first()));
      double x1 = snapped(b.persistent() ? kLeft + kMapWidth : column(b.last()));
      double y1 = snapped(level(b.offset())), y0 = snapped(level(b.offset() + alignedBytes(b)));
      if (y0 < y1)
        SvgWriter::addTo(shapes[b.kind()][scene_.parts.ofBuffer[size_t(i)] % 2], x0, y0,
                         std::max(x1, x0 + 0.5), y1);
    }
    for (const KindColor &kind : kKindColors) {
      svg_.path(shapes[kind.kind][0], kind.color);
      svg_.path(shapes[kind.kind][1], kind.shade);
    }
    ticks(level);
    regions(level);
    svg_.text(kLeft, y + kMapHeight + 16, "first command", "s g");
    svg_.text(kLeft + kMapWidth, y + kMapHeight + 16, "command " + utostr(scene_.positions - 1),
              "s g", SvgWriter::End);
    svg_.text(kLeft + kMapWidth / 2, y + kMapHeight + 16, "time, in commands \xe2\x86\x92", "s g",
              SvgWriter::Middle);
    svg_.text(kLeft, y + kMapHeight + 32,
              scene_.axis.isLinear() ? "Up: addresses in the arena. Grey: free."
                                     : "Up: addresses in the arena; what is kept from step to step "
                                       "is drawn lower than it is. Grey: free.",
              "s g");
  }

  /// The peak's moment, through all panes.
  void mark(double top, double bottom) {
    double x = middle(scene_.story.position);
    svg_.line(x, top, x, bottom, kRed, /*dashed=*/true);
  }

  /// What lives at the peak, by layer, with names; thin neighbours share a line.
  void pile(double y) {
    std::vector<Piece> pieces = pileOf(scene_);
    uint64_t kept = 0, all = pieces.empty() ? 0 : pieces.back().end;
    for (uint32_t b : findPeak(scene_.plan, scene_.index).buffers)
      kept +=
          scene_.plan.buffers(int(b)).persistent() ? alignedBytes(scene_.plan.buffers(int(b))) : 0;
    // What is kept is drawn as low as in the map.
    AddressAxis axis(kept, all);
    auto level = [&](uint64_t bytes) { return y + kMapHeight * (1 - axis(bytes)); };
    for (ArrayRef<Piece> run : linesOf(pieces, level, kLine)) {
      for (const Piece &piece : run) {
        double y0 = snapped(level(piece.end)), y1 = snapped(level(piece.begin));
        const KindColor &kind = colorOf(piece.kind);
        if (y0 < y1)
          svg_.rect({kPile, y0, kPileWidth, y1 - y0}, piece.shaded ? kind.shade : kind.color);
      }
      double top = level(run.back().end), bottom = level(run.front().begin);
      double x = kPile + kPileWidth;
      if (bottom - top < kLine)
        continue;
      svg_.line(x + 3, top + 1, x + 3, bottom - 1, kGrid);
      svg_.text(x + 7, (top + bottom) / 2 + 4, describe(run), "s");
    }
    svg_.text(kPile, y + kMapHeight + 16, "what lives at the peak, by layer", "s r");
  }

private:
  /// Where regions begin, and their names where there is room.
  template <typename Level> void regions(Level level) {
    for (const plan::Region &r : scene_.space().regions()) {
      double bottom = level(r.offset()), top = level(r.offset() + r.bytes());
      if (r.offset())
        svg_.line(kLeft, bottom, kLeft + kMapWidth, bottom, kInk);
      if (bottom - top >= 14)
        svg_.text(kLeft + kMapWidth - 6, top + 11,
                  shortened(printable(r.name()), 40) + ": " + bytesText(r.bytes()), "s",
                  SvgWriter::End);
    }
  }

  template <typename Level> void ticks(Level level) {
    uint64_t bytes = scene_.space().bytes(), step = 256;
    while (bytes / step > 10)
      step *= 2;
    double before = 1e9;
    for (uint64_t at = 0; at <= bytes; at += step) {
      double y = level(at);
      if (before - y < 13)
        continue;
      before = y;
      svg_.line(kLeft - 4, y, kLeft, y, kGrid);
      svg_.text(kLeft - 6, y + 4, at ? bytesText(at) : "0", "s g", SvgWriter::End);
    }
  }

  static constexpr double kLine = 10; ///< height of a line of text

  double column(uint64_t position) const {
    return kLeft + kMapWidth * double(position) / double(scene_.positions);
  }
  double middle(uint64_t position) const { return (column(position) + column(position + 1)) / 2; }

  const Scene &scene_;
  SvgWriter &svg_;
};

} // namespace

double drawPanes(const Scene &scene, SvgWriter &svg, double y) {
  Panes panes(scene, svg);
  panes.curve(y);
  double top = panes.strips(y + kCurveHeight + 2);
  panes.map(top);
  panes.pile(top);
  panes.mark(y, top + kMapHeight);
  return top + kMapHeight + 44;
}

} // namespace shardc::map
