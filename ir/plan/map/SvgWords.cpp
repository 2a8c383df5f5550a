// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Colors.h"
#include "ir/plan/map/SvgPicture.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace shardc::map {
namespace {

class Words {
public:
  Words(const Scene &scene, SvgWriter &svg) : scene_(scene), svg_(svg) {}

  double title(double y) {
    constexpr size_t kColumns = 92;
    // Where there is no room for all, the layer is what counts.
    StringRef where = scene_.story.where;
    if (where.size() > kColumns)
      where = where.take_front(where.rfind(" ("));
    svg_.text(20, y + 32, "Peak: " + bytesText(scene_.story.bytes) + ", in the " + shortened(where, kColumns), "t b");
    std::string line = shortened(printable(scene_.plan.model().path()), 60) + "; " +
                       utostr(scene_.plan.ranks()) +
                       (scene_.plan.ranks() == 1 ? " rank" : " ranks") + ", ZeRO stage " +
                       utostr(scene_.plan.zero()) + ", batch " + utostr(scene_.plan.batch()) +
                       " a rank and micro-step";
    const plan::Space &space = scene_.space();
    line += "; " + kindName(space.kind()).str() + " memory: arena " + bytesText(space.bytes()) +
            ", lower bound " + bytesText(space.lower_bound()) + ", gap " +
            percentText(double(space.bytes() - space.lower_bound()), double(space.lower_bound()));
    svg_.text(20, y + 52, line, "g");
    return y + 76;
  }

  /// The table: why the peak is as high as it is.
  double groups(double y) {
    y = summary(y) + 8;
    uint64_t largest = scene_.story.groups.empty() ? 1 : scene_.story.groups.front().total;
    PeakGroup rest;
    for (auto [i, group] : enumerate(scene_.story.groups)) {
      if (i < kMaxGroups || scene_.story.groups.size() == kMaxGroups + 1) {
        groupRow(group, largest, y += kRow);
        continue;
      }
      rest.total += group.total;
      rest.buffers += group.buffers;
      for (unsigned k = 0; k < kKinds; ++k)
        rest.bytes[k] += group.bytes[k];
    }
    if (rest.buffers) {
      rest.name = "others";
      groupRow(rest, largest, y += kRow);
    }
    return y;
  }

  double legend(double y) {
    y += 26;
    std::array<uint64_t, kKinds> largest{};
    for (const Live &live : scene_.curve)
      for (unsigned k = 0; k < kKinds; ++k)
        largest[k] = std::max(largest[k], live.bytes[k]);
    double x = kLeft;
    for (const KindColor &kind : kKindColors) {
      if (largest[kind.kind] * 1000 < std::max<uint64_t>(scene_.story.bytes, 1))
        continue; // not to be seen
      svg_.rect({x, y - 9, 10, 10}, kind.color);
      svg_.text(x + 14, y, kind.label, "s");
      x += 14 + textWidth(kind.label, 10) + 16;
    }
    return y + 18;
  }

private:
  /// In lines that fit the picture; returns where the last one is.
  double summary(double y) {
    constexpr size_t kColumns = 165;
    StringRef rest = scene_.story.summary;
    for (bool first = true; !rest.empty(); first = false) {
      size_t end = rest.size() > kColumns ? rest.take_front(kColumns).rfind(' ') : StringRef::npos;
      end = std::min(end, rest.size()); // a word as long as that is shortened
      const std::string line = shortened(rest.take_front(end), kColumns);
      if (first)
        svg_.text(20, y, "Why:", "b", SvgWriter::Start, " " + line);
      else
        svg_.text(20, y += 18, line, "");
      rest = rest.drop_front(end).ltrim();
    }
    return y;
  }

  void groupRow(const PeakGroup &group, uint64_t largest, double y) {
    double x = 20;
    for (const KindColor &kind : kKindColors) {
      double width = 200 * double(group.bytes[kind.kind]) / double(std::max<uint64_t>(largest, 1));
      if (width >= 0.05)
        svg_.rect({x, y - 11, width, 13}, kind.color);
      x += width;
    }
    svg_.text(300, y, bytesText(group.total), "b", SvgWriter::End);
    svg_.text(352, y,
              percentText(double(group.total), double(std::max<uint64_t>(scene_.story.bytes, 1))),
              "g", SvgWriter::End);
    std::string why = group.why;
    if (group.parts > 1)
      why = utostr(group.parts) + " layers of up to " + bytesText(group.mostOfAPart) + ", " + why;
    if (!group.operands.empty() && group.operands.size() <= 3)
      why += ": " + join(group.operands, ", ");
    svg_.text(366, y, shortened(group.name, 40), "b", SvgWriter::Start, "   " + shortened(why, 95));
  }

  static constexpr size_t kMaxGroups = 9;
  const Scene &scene_;
  SvgWriter &svg_;
};

} // namespace

double drawWords(const Scene &scene, SvgWriter &svg, double y) {
  Words words(scene, svg);
  return words.legend(words.groups(words.title(y)));
}

} // namespace shardc::map
