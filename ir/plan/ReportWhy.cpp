// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/base/Tensor.h"
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Parts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace llvm;

namespace shardc {
namespace {

class Why {
public:
  Why(const plan::Plan &plan, raw_ostream &os) : plan_(plan), positions_(plan), os_(os) {}

  void printParameter(const plan::Parameter &p) const;
  void printBuffer(uint32_t index) const;
  void printList(ArrayRef<uint32_t> buffers) const;
  /// Which parameters the bucket of a layer holds; nothing of a layer without one.
  void printMembers(StringRef layer) const;

private:
  void printPlace(uint32_t index) const;
  void printLife(uint32_t index) const;
  void printTouches(uint32_t index) const;
  std::string bufferText(uint32_t index) const {
    return utostr(index) + " (" + printable(fullName(plan_, plan_.buffers(index))) + ")";
  }

  const plan::Plan &plan_;
  Positions positions_;
  raw_ostream &os_;
};

std::string liveText(const plan::Buffer &b) {
  return b.persistent() ? "always" : "[" + utostr(b.first()) + ", " + utostr(b.last()) + ")";
}

std::string exactBytes(uint64_t bytes) {
  return bytes < 1024 ? bytesText(bytes) : bytesText(bytes) + " (" + utostr(bytes) + " bytes)";
}

/// All buffers that hold the bucket, or its slice: those that the table names, and those that commands fill
/// for a while.
std::vector<uint32_t> buffersOf(const plan::Plan &plan, const plan::Bucket &bucket) {
  std::set<uint32_t> buffers(bucket.state_buffers().begin(), bucket.state_buffers().end());
  for (int64_t buffer : {int64_t(bucket.parameter_buffer()), int64_t(bucket.gradient_buffer()),
                         bucket.has_master_buffer() ? int64_t(bucket.master_buffer()) : -1})
    if (buffer >= 0)
      buffers.insert(uint32_t(buffer));
  for (auto [index, b] : enumerate(plan.buffers()))
    if (b.kind() == plan::COMMUNICATION && plan.strings(b.layer()) == bucket.name())
      buffers.insert(index);
  return {buffers.begin(), buffers.end()};
}

void Why::printParameter(const plan::Parameter &p) const {
  const plan::Bucket &bucket = plan_.buckets(p.bucket());
  uint64_t count = numElements({p.dims().data(), size_t(p.dims_size())});
  os_ << "parameter " << printable(p.name()) << ": " << typeText(p.dtype(), p.dims())
      << (p.trainable() ? ", trained" : ", frozen") << '\n';
  Section ties(os_, "  tied");
  for (const std::string &tie : p.ties())
    ties.line(printable(tie));
  Section lies(os_, "  bucket");
  lies.line(printable(bucket.name()) + ", elements [" + Twine(p.offset()) + ", " + Twine(p.offset() + count) + ") of " +
            Twine(bucket.elements()));
  if (uint64_t slice = bucket.elements() / plan_.ranks(); plan_.ranks() > 1 && count && slice) {
    uint64_t first = p.offset() / slice, last = (p.offset() + count - 1) / slice;
    lies.line(first == last ? "in the slice of rank " + Twine(first)
                            : "in the slices of ranks " + Twine(first) + " to " + Twine(last));
  }
  Section source(os_, "  values");
  switch (p.source().kind()) {
  case plan::ValueSource::FILE:
    source.line(printable(p.source().file()) + ", bytes [" + Twine(p.source().offset()) + ", " +
                Twine(p.source().offset() + p.source().length()) + ")" +
                (p.source().transposed() ? ", transposed there" : ""));
    break;
  case plan::ValueSource::ZERO:
    source.line("zeros");
    break;
  default:
    source.line("not in the model file: given by --weights or --init-weights");
  }
  os_ << "what holds its bucket\n";
  printList(buffersOf(plan_, bucket));
}

void Why::printList(ArrayRef<uint32_t> buffers) const {
  std::vector<Life> lives = livesOf(plan_);
  Table table({{"buffer", Table::Right},
               {"bytes", Table::Right},
               {"live"},
               {"kind"},
               {"first written by", Table::Flexible},
               {"name", Table::Flexible}});
  for (uint32_t index : buffers) {
    const plan::Buffer &b = plan_.buffers(index);
    uint64_t producer = lives[index].producer;
    table.add({utostr(index), bytesText(b.bytes()), liveText(b), kindName(b.kind()).str(),
               producer == Life::kNone ? "the host" : printable(positions_.command(producer).kernel()),
               printable(fullName(plan_, b))});
  }
  table.print(os_);
}

void Why::printMembers(StringRef layer) const {
  constexpr size_t kNamed = 8;
  std::vector<std::string> names;
  for (const plan::Parameter &p : plan_.parameters())
    if (plan_.buckets(p.bucket()).name() == layer)
      names.push_back(printable(p.name()));
  if (names.empty())
    return;
  size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  Section(os_, "holds").line(join(names, ", ") + (more ? " and " + utostr(more) + " more parameters" : ""));
}

void Why::printBuffer(uint32_t index) const {
  const plan::Buffer &b = plan_.buffers(index);
  os_ << "buffer " << index << ": " << printable(fullName(plan_, b)) << '\n';
  Section(os_, "  what").line(kindName(b.kind()) + ", " + exactBytes(b.bytes()) +
                              (b.layer() ? ", layer " + printable(plan_.strings(b.layer())) : ""));
  printPlace(index);
  printLife(index);
  printTouches(index);
}

/// Where it lies, what was there before and comes after it, and its part in the peak.
void Why::printPlace(uint32_t index) const {
  const plan::Buffer &b = plan_.buffers(index);
  auto shares = [&](const plan::Buffer &other) {
    return other.space() == b.space() && other.bytes() && !other.persistent() &&
           other.offset() < b.offset() + b.bytes() && b.offset() < other.offset() + other.bytes();
  };
  int before = -1, after = -1;
  if (!b.persistent())
    for (int i = 0; i < plan_.buffers_size(); ++i) {
      const plan::Buffer &other = plan_.buffers(i);
      if (i == int(index) || !shares(other))
        continue;
      if (other.last() <= b.first() && (before < 0 || other.last() > plan_.buffers(before).last()))
        before = i;
      if (other.first() >= b.last() && (after < 0 || other.first() < plan_.buffers(after).first()))
        after = i;
    }
  Section place(os_, "  where");
  std::string region;
  for (const plan::Region &r : plan_.spaces(b.space()).regions())
    if (b.offset() >= r.offset() && b.offset() - r.offset() < r.bytes())
      region = ", region " + printable(r.name());
  place.line("space " + Twine(b.space()) + " (" + kindName(plan_.spaces(b.space()).kind()) + ")" + region +
             ", bytes [" + Twine(b.offset()) + ", " + Twine(b.offset() + b.bytes()) + ")");
  if (before >= 0)
    place.line("before it there, until " + Twine(plan_.buffers(before).last()) + ": " + bufferText(before));
  if (after >= 0)
    place.line("after it there, from " + Twine(plan_.buffers(after).first()) + ": " + bufferText(after));
  Peak peak = findPeak(plan_, b.space());
  auto at = llvm::find(peak.buffers, index);
  Section(os_, "  peak").line(at == peak.buffers.end()
                                  ? "does not live at the peak of its space"
                                  : "lives there: " + percentText(double(alignedBytes(b)), double(peak.bytes)) +
                                        " of " + bytesText(peak.bytes) + ", number " +
                                        Twine(at - peak.buffers.begin() + 1) + " by size of " +
                                        Twine(peak.buffers.size()));
}

/// From when until when it lives, and for whose sake.
void Why::printLife(uint32_t index) const {
  const plan::Buffer &b = plan_.buffers(index);
  Life life = livesOf(plan_)[index];
  Section section(os_, "  life");
  if (b.persistent())
    section.line("always: it lives over all steps");
  else
    section.line("positions [" + Twine(b.first()) + ", " + Twine(b.last()) + ") of " + Twine(positions_.size()));
  section.line(life.producer == Life::kNone ? "written by the host only"
                                            : "from: " + positions_.describe(life.producer));
  if (life.lastReader != Life::kNone)
    section.line("until: " + positions_.describe(life.lastReader) + " reads it last");
  for (const plan::Output &output : plan_.outputs())
    if (output.ref().buffer() == index && !output.ref().absent())
      section.line("until the end of " + printable(output.program()) + ": it holds the output " +
                   printable(output.name()));
  if (!b.persistent() && b.last() < positions_.size() && life.lastReader != Life::kNone && b.last() == life.lastReader)
    section.line("then " + positions_.describe(b.last()) + " writes its result over it");
}

void Why::printTouches(uint32_t index) const {
  std::vector<Touch> touches = touchesOf(plan_, index);
  os_ << "what touches it: " << touches.size() << (touches.size() == 1 ? " command\n" : " commands\n");
  Table table({{"at", Table::Right},
               {"program"},
               {"stream"},
               {"phase"},
               {"how"},
               {"kernel"},
               {"place", Table::Flexible}});
  // A workspace is touched by a thousand commands, all alike.
  constexpr size_t kHead = 30, kTail = 10;
  for (auto [i, touch] : enumerate(touches)) {
    if (touches.size() > kHead + kTail + 1 && i >= kHead && i + kTail < touches.size()) {
      if (i == kHead)
        table.add({"..", utostr(touches.size() - kHead - kTail) + " more", "", "", "", "", ""});
      continue;
    }
    const plan::Command &c = positions_.command(touch.position);
    const char *how = touch.isWorkspace ? "workspace" : !touch.writes ? "reads" : touch.reads ? "both" : "writes";
    table.add({utostr(touch.position), printable(plan_.programs(positions_.programIndex(touch.position)).name()),
               streamName(c.stream()), phaseName(c.phase()).str(), how, printable(c.kernel()),
               printable(plan_.strings(c.place()))});
  }
  if (!table.empty())
    table.print(os_);
}

/// Names that contain the text; if none does, those that differ from it in a few letters.
std::string near(const plan::Plan &plan, StringRef name) {
  std::set<std::string> containing, similar;
  unsigned limit = unsigned(name.size()) / 3 + 1;
  auto consider = [&](StringRef other) {
    if (!name.empty() && other.contains_insensitive(name))
      containing.insert(printable(other));
    else if (other.edit_distance_insensitive(name, /*AllowReplacements=*/true, limit) <= limit)
      similar.insert(printable(other));
  };
  for (const plan::Parameter &p : plan.parameters())
    consider(p.name());
  for (const plan::Buffer &b : plan.buffers())
    consider(b.name());
  std::string text;
  for (const std::string &other : containing.empty() ? similar : containing) {
    if (text.size() + other.size() > screenColumns())
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + other;
  }
  return text;
}

/// Those with the name, else those that tables have under it ("decoder.block.*: matmul_*"), else those of the
/// layer; and which of that they are.
std::pair<std::vector<uint32_t>, const char *> buffersCalled(const plan::Plan &plan, StringRef name) {
  std::vector<uint32_t> named, alike, inLayer;
  map::Parts parts = map::partsOf(plan, livesOf(plan));
  for (auto [i, b] : enumerate(plan.buffers())) {
    if (b.name() == name || fullName(plan, b) == name)
      named.push_back(i);
    if (groupName(plan, b) == name)
      alike.push_back(i);
    if (parts.names[parts.ofBuffer[i]] == name)
      inLayer.push_back(i);
  }
  if (!named.empty())
    return {named, "are called so"};
  for (auto *list : {&alike, &inLayer})
    llvm::stable_sort(*list, [&](uint32_t a, uint32_t b) { return plan.buffers(a).bytes() > plan.buffers(b).bytes(); });
  return !alike.empty() ? std::pair(alike, "are alike") : std::pair(inLayer, "are of this layer");
}

} // namespace

Error printWhy(const plan::Plan &plan, StringRef name, raw_ostream &os) {
  Why why(plan, os);
  uint32_t index;
  StringRef number = name;
  if (number.consume_front("%"))
    number = number.take_until([](char c) { return c == '.'; }); // as the text form has it: "%12.name"
  if (to_integer(number, index, 10)) {
    if (index >= uint32_t(plan.buffers_size()))
      return userError("--why: no such buffer: got " + printable(name) + ", wanted a number below " +
                       Twine(plan.buffers_size()));
    why.printBuffer(index);
    return Error::success();
  }
  for (const plan::Parameter &p : plan.parameters())
    if (p.name() == name || is_contained(p.ties(), name)) {
      why.printParameter(p);
      return Error::success();
    }
  auto [buffers, how] = buffersCalled(plan, name);
  if (buffers.size() == 1) {
    why.printBuffer(buffers.front());
    return Error::success();
  }
  if (buffers.empty()) {
    std::string others = near(plan, name);
    return userError("--why: nothing is called so: got " + printable(name) +
                         ", wanted a parameter, a layer, or a buffer by name or number",
                     others.empty() ? "--buffers lists all" : "there are: " + others);
  }
  why.printMembers(name);
  os << buffers.size() << " buffers " << how << "; --why NUMBER tells of one\n";
  why.printList(buffers);
  return Error::success();
}

} // namespace shardc
