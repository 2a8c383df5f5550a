// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Text.h"
#include "ir/plan/map/Colors.h"
#include "ir/plan/map/Map.h"
#include "ir/plan/map/Story.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace shardc {
namespace map {
namespace {

/// The page without its data, cut in two where the data goes.
constexpr const char *kPage[] = {
#include "ir/plan/map/MapPage.inc"
};

/// The JSON that page/data.js reads. Arrays run over commands or buffers: 100,000 objects would be
/// ten times as long.
class Data {
public:
  Data(const plan::Plan &plan, raw_ostream &os)
      : plan_(plan), positions_(plan), lives_(livesOf(plan)), parts_(partsOf(plan, lives_)),
        bands_(bandsOf(plan, parts_)), json_(os) {
    for (const plan::Command *c : positions_.commands())
      kernels_.push_back(number(c->kernel()));
  }

  void write() {
    json_.object([&] {
      text("subtitle", subtitle());
      json_.attributeArray("kinds", [&] { writeKinds(); });
      list("programs", plan_.programs(),
           [&](const plan::Program &p) { return printable(p.name()); });
      list("parts", parts_.names, [](const std::string &name) { return name; });
      json_.attributeArray("bands", [&] {
        for (const Band &b : bands_)
          json_.object([&] {
            json_.attribute("first", b.first);
            json_.attribute("last", b.last);
            json_.attribute("program", b.program);
            json_.attribute("phase", b.phase);
            json_.attribute("part", b.part);
          });
      });
      json_.attributeObject("commands", [&] { writeCommands(); });
      json_.attributeObject("buffers", [&] { writeBuffers(); });
      json_.attributeArray("spaces", [&] {
        for (int s = 0; s < plan_.spaces_size(); ++s)
          json_.object([&] { writeSpace(uint32_t(s)); });
      });
      list("strings", strings_, [](const std::string &s) { return printable(s); });
    });
  }

private:
  void text(StringRef key, StringRef value) { json_.attribute(key, utf8(value)); }

  template <typename Range, typename Value>
  void list(StringRef key, const Range &range, Value value) {
    json_.attributeArray(key, [&] {
      for (const auto &item : range) {
        auto v = value(item);
        if constexpr (std::is_same_v<decltype(v), std::string>)
          json_.value(utf8(v));
        else
          json_.value(v);
      }
    });
  }

  uint32_t number(StringRef string) {
    auto [entry, isNew] = numbers_.try_emplace(string, uint32_t(strings_.size()));
    if (isNew)
      strings_.push_back(string.str());
    return entry->second;
  }

  std::string subtitle() const {
    return (printable(plan_.model().path()) + "; " + Twine(plan_.ranks()) +
            (plan_.ranks() == 1 ? " rank" : " ranks") + ", ZeRO stage " + Twine(plan_.zero()) +
            ", batch " + Twine(plan_.batch()) + " a rank and micro-step; " +
            Twine(plan_.buffers_size()) + " buffers, " + Twine(positions_.size()) + " commands")
        .str();
  }

  void writeKinds() {
    for (const KindColor &kind : kKindColors)
      json_.object([&] {
        json_.attribute("name", kindName(kind.kind));
        json_.attribute("label", kind.label);
        json_.attribute("color", kind.color);
        json_.attribute("shade", kind.shade);
      });
  }

  void writeCommands() {
    list("kernel", kernels_, [](uint32_t kernel) { return kernel; });
    list("place", positions_.commands(),
         [&](const plan::Command *c) { return number(plan_.strings(int(c->place()))); });
    json_.attributeArray("operands", [&] {
      for (const plan::Command *c : positions_.commands())
        json_.array([&] {
          for (const auto *refs : {&c->inputs(), &c->outputs()})
            for (const plan::Ref &ref : *refs)
              if (!ref.absent())
                json_.value(ref.buffer());
        });
    });
  }

  void writeBuffers() {
    const auto &buffers = plan_.buffers();
    auto position = [](uint64_t p) { return p == Life::kNone ? int64_t(-1) : int64_t(p); };
    list("name", buffers, [](const plan::Buffer &b) { return printable(b.name()); });
    list("kind", buffers,
         [](const plan::Buffer &b) { return int64_t(&colorOf(b.kind()) - kKindColors); });
    list("part", parts_.ofBuffer, [](uint32_t part) { return part; });
    list("space", buffers, [](const plan::Buffer &b) { return b.space(); });
    list("offset", buffers, [](const plan::Buffer &b) { return b.offset(); });
    list("bytes", buffers, [](const plan::Buffer &b) { return b.bytes(); });
    list("first", buffers, [](const plan::Buffer &b) { return b.persistent() ? 0 : b.first(); });
    list("last", buffers, [&](const plan::Buffer &b) {
      return b.persistent() ? positions_.size() : b.last();
    });
    list("always", buffers, [](const plan::Buffer &b) { return int64_t(b.persistent()); });
    list("writer", lives_, [&](const Life &life) { return position(life.producer); });
    list("reader", lives_, [&](const Life &life) { return position(life.lastReader); });
  }

  void writeSpace(uint32_t s) {
    const plan::Space &space = plan_.spaces(int(s));
    Story story = storyOf(plan_, s, parts_, lives_, bands_);
    text("kind", kindName(space.kind()));
    json_.attribute("bytes", space.bytes());
    json_.attribute("bound", space.lower_bound());
    json_.attribute("peak", story.bytes);
    json_.attribute("position", story.position);
    text("summary", story.summary);
    text("method", printable(space.method()));
    json_.attributeArray("regions", [&] {
      for (const plan::Region &region : space.regions())
        json_.object([&] {
          text("name", printable(region.name()));
          json_.attribute("offset", region.offset());
          json_.attribute("bytes", region.bytes());
          json_.attribute("bound", region.lower_bound());
        });
    });
    AddressAxis axis(plan_, s);
    json_.attributeArray("axis", [&] {
      for (const AddressAxis::Point &point : axis.points())
        json_.array([&] {
          json_.value(point.address);
          json_.value(point.at);
        });
    });
    std::vector<Live> curve = liveCurve(plan_, s);
    json_.attributeObject("curve", [&] {
      list("at", curve, [](const Live &live) { return live.position; });
      list("total", curve, [](const Live &live) { return live.total(); });
      json_.attributeArray("bytes", [&] {
        for (const KindColor &kind : kKindColors)
          json_.array([&] {
            for (const Live &live : curve)
              json_.value(live.bytes[kind.kind]);
          });
      });
    });
  }

  const plan::Plan &plan_;
  Positions positions_;
  std::vector<Life> lives_;
  Parts parts_;
  std::vector<Band> bands_;
  std::vector<std::string> strings_;
  StringMap<uint32_t> numbers_; // only looked up
  std::vector<uint32_t> kernels_;
  json::OStream json_;
};

} // namespace
} // namespace map

void printMapHtml(const plan::Plan &plan, raw_ostream &os) {
  static_assert(std::size(map::kPage) == 2);
  std::string data;
  raw_string_ostream stream(data);
  map::Data(plan, stream).write();
  os << map::kPage[0];
  // Names come out of files: none ends the element that the data is in.
  for (char c : data)
    c == '<' ? os << "\\u003c" : os << c;
  os << map::kPage[1];
}

} // namespace shardc
