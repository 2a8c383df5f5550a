// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Colors.h"
#include "ir/plan/map/SvgPicture.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;

namespace shardc::map {
namespace {

/// "decoder.block" of "decoder.block.23".
std::string stem(StringRef name) { return name.rtrim("0123456789").rtrim("./_").str(); }

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
    svg_.text(kCut, height(uint64_t(most)) + 4, "arena: " + bytesText(uint64_t(most)), "s");
    svg_.text(kCut, y + 30, "live bytes, by kind", "s g");
    if (!scene_.space().method().empty())
      svg_.text(kCut, y + 46, "packed by: " + shortened(printable(scene_.space().method()), 30),
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
          return std::tuple(b.program, b.phase, stem(scene_.parts.names[b.part]));
        },
        [&](const Band &b) {
          std::string name = stem(scene_.parts.names[b.part]);
          return std::vector{name, StringRef(name).rsplit('.').second.str()};
        },
        [](const Band &b) { return "#e9edf0"; });
    strip([](const Band &b) { return std::tuple(b.program, b.phase, b.part); },
          [&](const Band &b) {
            StringRef name = scene_.parts.names[b.part];
            return std::vector{name.drop_front(name.rtrim("0123456789").size()).str()};
          },
          [](const Band &b) { return b.part % 2 ? "#cdd5dc" : "#dfe5ea"; });
    const Band &band = bandAt(scene_.bands, scene_.story.position);
    svg_.text(kCut, y - 2 * kStrip - 5, phaseName(scene_.plan, band).str() + " of", "s r");
    svg_.text(kCut, y - kStrip - 3, shortened(scene_.story.part, 36), "s b r");
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

  /// A cut through the map at the peak, and what its pieces belong to; thin neighbours share a
  /// line.
  void cut(double y) {
    auto level = [&](uint64_t address) { return y + kMapHeight * (1 - scene_.axis(address)); };
    auto isThin = [&](const Piece &piece) { return level(piece.begin) - level(piece.end) < kLine; };
    svg_.rect({kCut, y, kCutWidth, kMapHeight}, kFree);
    std::vector<Piece> pieces = piecesOfCut();
    for (size_t i = 0, end; i < pieces.size(); i = end) {
      end = i + 1;
      while (isThin(pieces[i]) && end < pieces.size() && isThin(pieces[end]))
        ++end;
      auto run = ArrayRef(pieces).slice(i, end - i);
      for (const Piece &piece : run) {
        double y0 = snapped(level(piece.end)), y1 = snapped(level(piece.begin));
        const KindColor &kind = colorOf(piece.kind);
        if (y0 < y1)
          svg_.rect({kCut, y0, kCutWidth, y1 - y0}, piece.shaded ? kind.shade : kind.color);
      }
      double top = level(run.back().end), bottom = level(run.front().begin), x = kCut + kCutWidth;
      if (bottom - top < kLine)
        continue;
      svg_.line(x + 3, top + 1, x + 3, bottom - 1, kGrid);
      svg_.text(x + 7, (top + bottom) / 2 + 4, describe(run), "s");
    }
    svg_.text(kCut, y + kMapHeight + 16, "the map at the peak", "s r");
  }

private:
  struct Piece {
    uint64_t begin, end;
    std::string name;
    plan::BufferKind kind;
    bool shaded;
  };

  /// "encoder.layer, decoder.layer": names in a row; where they are too long, without how they
  /// begin.
  static std::string fitting(std::vector<std::string> names) {
    constexpr unsigned kColumns = 27;
    for (bool cut = true; cut && columnsOf(join(names, ", ")) > kColumns;) {
      cut = false;
      for (std::string &name : names)
        if (auto [head, tail] = StringRef(name).split('.'); !tail.empty()) {
          name = tail.str();
          cut = true;
        }
    }
    return shortened(join(names, ", "), kColumns);
  }

  /// "1.66 GiB  encoder.block, decoder.block": layers of one stem together; what is less than a
  /// twentieth goes without saying.
  static std::string describe(ArrayRef<Piece> run) {
    struct Share {
      std::string stem, name;
      uint64_t bytes;
    };
    std::vector<Share> shares;
    uint64_t bytes = 0;
    for (const Piece &piece : run) {
      uint64_t size = piece.end - piece.begin;
      bytes += size;
      std::string key = stem(piece.name);
      auto known = find_if(shares, [&](const Share &share) { return share.stem == key; });
      if (known == shares.end()) {
        shares.push_back({key, piece.name, size});
        continue;
      }
      known->bytes += size;
      if (known->name != piece.name)
        known->name = key;
    }
    std::vector<std::string> names;
    for (const Share &share : shares)
      if (share.bytes * 20 >= bytes)
        names.push_back(share.name);
    return bytesText(bytes) + "  " + fitting(names);
  }

  /// What lives at the peak by address; neighbours of one part and kind together, of one kind where
  /// they are persistent.
  std::vector<Piece> piecesOfCut() const {
    std::vector<Piece> pieces;
    std::vector<uint32_t> order = findPeak(scene_.plan, scene_.index).buffers;
    llvm::sort(order, [&](uint32_t a, uint32_t b) {
      return std::pair(scene_.plan.buffers(int(a)).offset(), a) <
             std::pair(scene_.plan.buffers(int(b)).offset(), b);
    });
    for (uint32_t index : order) {
      const plan::Buffer &b = scene_.plan.buffers(int(index));
      uint32_t part = scene_.parts.ofBuffer[index];
      std::string name = b.persistent() ? colorOf(b.kind()).label : scene_.parts.names[part];
      uint64_t end = b.offset() + alignedBytes(b);
      if (!pieces.empty() && pieces.back().name == name && pieces.back().kind == b.kind() &&
          pieces.back().end == b.offset())
        pieces.back().end = end;
      else
        pieces.push_back({b.offset(), end, name, b.kind(), !b.persistent() && part % 2 == 1});
    }
    return pieces;
  }

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
  panes.cut(top);
  panes.mark(y, top + kMapHeight);
  return top + kMapHeight + 44;
}

} // namespace shardc::map
