// SPDX-License-Identifier: Apache-2.0
#include "ir/base/DType.h"
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/Wire.h"
#include "ir/plan/map/Scene.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace shardc {
namespace {

struct Change {
  std::string what;
  uint64_t saves;
};

/// What lives at the peaks, as far as changes of the plan concern it.
struct AtPeak {
  uint64_t ofRows = 0;    ///< grows with the batch
  uint64_t parameters = 0, states = 0;
  uint64_t gradients = 0; ///< of buckets that are complete: stages 2 and 3 keep slices of them
  uint64_t scratch = 0;   ///< of products: as large whatever changes
};

/// A sum of the backward pass that becomes gradients of a bucket element by element, maybe after more was added in place: as large as weights, whatever the batch.
bool isOfWeights(const plan::Plan &plan, const Positions &positions, uint32_t buffer) {
  for (const Touch &touch : touchesOf(plan, buffer)) {
    const plan::Command &c = positions.command(touch.position);
    if (touch.writes && phaseName(c.phase()) == "forward")
      return false;
    if (!touch.reads || c.kernel() == "matmul")
      continue;
    for (int o = 0; o < c.outputs_size(); ++o) {
      const plan::Ref &out = c.outputs(o);
      bool isInPlace = o < c.in_place_size() && c.in_place(o) && c.inputs(int(c.in_place(o)) - 1).buffer() == buffer;
      bool isAlike = any_of(c.inputs(), [&](const plan::Ref &in) {
        return in.buffer() == buffer && !in.absent() && equal(in.dims(), out.dims());
      });
      if (out.absent() || out.buffer() == buffer || !isAlike)
        continue;
      if (plan.buffers(int(out.buffer())).kind() == plan::GRADIENT || (isInPlace && isOfWeights(plan, positions, out.buffer())))
        return true;
    }
  }
  return false;
}

AtPeak bytesAtPeak(const plan::Plan &plan) {
  AtPeak at;
  Positions positions(plan);
  for (int s = 0; s < plan.spaces_size(); ++s) {
    Peak peak = findPeak(plan, s);
    auto isComplete = [&](uint32_t buffer) {
      return none_of(touchesOf(plan, buffer), [&](const Touch &touch) {
        const plan::Command &c = positions.command(touch.position);
        return touch.writes && touch.position > peak.position && phaseName(c.phase()) != "update" && !isCollective(c);
      });
    };
    for (uint32_t index : peak.buffers) {
      uint64_t bytes = alignedBytes(plan.buffers(index));
      switch (plan.buffers(index).kind()) {
      case plan::WORKSPACE:
        (positions.command(peak.position).kernel() == "matmul" ? at.scratch : at.ofRows) += bytes;
        break;
      case plan::ACTIVATION:
        at.ofRows += isOfWeights(plan, positions, index) ? 0 : bytes;
        break;
      case plan::INPUT:
        at.ofRows += bytes;
        break;
      case plan::PARAMETER:
        at.parameters += bytes;
        break;
      case plan::OPTIMIZER_STATE:
        at.states += bytes;
        break;
      case plan::GRADIENT:
        at.gradients += isComplete(index) ? bytes : 0;
        break;
      default:
        break;
      }
    }
  }
  return at;
}

/// Of one rank, cut over two at stage 3: half of all that is kept, less two buckets that are gathered for the
/// command at the peak and the next.
uint64_t savedByASecondRank(const plan::Plan &plan, const AtPeak &at) {
  uint64_t half = (at.parameters + at.states + at.gradients) / 2, all = 0;
  for (const plan::Bucket &bucket : plan.buckets())
    all += bucket.elements() * uint64_t(byteSize(DType(bucket.dtype())));
  return half - std::min(half, 2 * all / uint64_t(std::max(1, plan.buckets_size())));
}

/// Changes that this compiler can make, those that change the training least first.
std::vector<Change> changes(const plan::Plan &plan, const AtPeak &at) {
  unsigned ranks = plan.ranks(), zero = plan.zero();
  std::vector<Change> list;
  if (ranks > 1 && zero < 3) {
    uint64_t cutNext = zero == 0 ? at.states : zero == 1 ? at.gradients : at.parameters;
    list.push_back({"--zero " + utostr(zero + 1) + " (now " + utostr(zero) + ")", cutNext / ranks * (ranks - 1)});
  }
  if (plan.batch() > 1) {
    uint64_t batch = plan.batch() / 2;
    list.push_back({"--batch " + utostr(batch) + " (now " + utostr(plan.batch()) + ")",
                    uint64_t(double(at.ofRows) * double(plan.batch() - batch) / double(plan.batch()))});
  } else {
    list.push_back({"half of a sequence dim (--dim)", at.ofRows / 2});
  }
  if (ranks == 1)
    list.push_back({"--ranks 2 --zero 3 (now 1 rank)", savedByASecondRank(plan, at)});
  else if (zero > 0)
    list.push_back({"--ranks " + utostr(2 * ranks) + " (now " + utostr(ranks) + ")",
                    (at.states + (zero > 1 ? at.gradients : 0) + (zero > 2 ? at.parameters : 0)) / 2});
  uint64_t secondArrays = 0;
  for (const plan::Bucket &bucket : plan.buckets())
    if (bucket.state_buffers_size() > 1)
      secondArrays += alignedBytes(plan.buffers(bucket.state_buffers(1)));
  list.push_back({"--optimizer sgd (one array of state instead of two)", secondArrays});
  uint64_t least = std::max<uint64_t>(kAlignment, lowerBoundBytes(plan) / 1000);
  erase_if(list, [&](const Change &change) { return change.saves < least; });
  return list;
}

} // namespace

/// A table without its long and light tail: groups below a thousandth of the peak are one row.
static void printGroups(const plan::Plan &plan, const Peak &peak, raw_ostream &os) {
  Table table({{"bytes", Table::Right},
               {"share", Table::Right},
               {"buffers", Table::Right},
               {"largest", Table::Spare},
               {"kind"},
               {"name", Table::Flexible}});
  auto add = [&](const BufferGroup &group, StringRef kind) {
    table.add({bytesText(group.bytes), percentText(double(group.bytes), double(peak.bytes)), utostr(group.count),
               bytesText(group.largest), kind.str(), printable(group.shown)});
  };
  BufferGroup rest;
  for (const BufferGroup &group : groupsOf(plan, peak.buffers)) {
    if (group.bytes * 1000 >= peak.bytes) {
      add(group, kindName(group.kind));
      continue;
    }
    rest.bytes += group.bytes;
    rest.largest = std::max(rest.largest, group.largest);
    rest.count += group.count;
  }
  if (rest.count)
    add(rest, "others");
  table.print(os);
}

/// Why it lives: the same, by layer and reason.
static void printReasons(const map::Story &story, raw_ostream &os) {
  Table table({{"bytes", Table::Right},
               {"share", Table::Right},
               {"layers", Table::Right},
               {"in one", Table::Spare},
               {"layer", Table::Flexible},
               {"why", Table::Flexible}});
  uint64_t rest = 0;
  for (const map::PeakGroup &group : story.groups) {
    if (group.total * 1000 < story.bytes) {
      rest += group.total;
      continue;
    }
    std::string why = group.why;
    for (const std::string &name : group.operands)
      why += (&name == &group.operands.front() ? ": " : ", ") + name;
    table.add({bytesText(group.total), percentText(double(group.total), double(story.bytes)), utostr(group.parts),
               bytesText(group.mostOfAPart), group.name, why});
  }
  if (rest)
    table.add({bytesText(rest), percentText(double(rest), double(story.bytes)), "", "", "others", ""});
  table.print(os);
}

static std::string placeOf(const plan::Plan &plan, const map::Story &story) {
  Positions positions(plan);
  if (story.position >= positions.size())
    return "before the first command";
  return positions.describe(story.position) + ", layer " + story.part;
}

std::string peakPlace(const plan::Plan &plan, uint32_t space) { return placeOf(plan, map::Scene(plan, space).story); }

void printPeak(const plan::Plan &plan, raw_ostream &os) {
  for (int s = 0; s < plan.spaces_size(); ++s) {
    Peak peak = findPeak(plan, s);
    if (peak.buffers.empty())
      continue;
    map::Story story = map::Scene(plan, s).story;
    os << "space " << s << " (" << kindName(plan.spaces(s).kind()) << "): " << bytesText(peak.bytes)
       << " live in " << peak.buffers.size() << " buffers, arena "
       << bytesText(plan.spaces(s).bytes()) << "\n"
       << shortened("at " + placeOf(plan, story), screenColumns()) << "\n\n";
    printReasons(story, os);
    os << "\n";
    printGroups(plan, peak, os);
  }
  os << "\nwhat would lower it\n";
  AtPeak at = bytesAtPeak(plan);
  std::vector<Change> list = changes(plan, at);
  for (const Change &change : list)
    os << "  " << change.what << ": about " << bytesText(change.saves) << " less\n";
  if (list.empty())
    os << (at.scratch > at.parameters
               ? "  nothing: scratch memory of a product is nearly all of it, the same for any model\n"
               : "  a smaller model: parameters are nearly all of it\n");
}

} // namespace shardc
