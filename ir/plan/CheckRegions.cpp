// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/plan/Check.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace shardc::check {
namespace {

constexpr int kMaxRegions = 64;

std::string describeRegion(unsigned space, const plan::Region &region) {
  return "space " + utostr(space) + ": region '" + printable(region.name()) + "'";
}

/// One behind the other, from the start of the space to its end.
Error checkTiling(unsigned index, const plan::Space &space) {
  if (space.regions_size() > kMaxRegions)
    return userError("space " + Twine(index) + ": too many regions: got " + Twine(space.regions_size()) + ", wanted at most " +
                     Twine(kMaxRegions));
  StringSet<> names;
  uint64_t end = 0;
  for (const plan::Region &region : space.regions()) {
    std::string what = describeRegion(index, region);
    if (region.name().empty() || !names.insert(region.name()).second)
      return userError(what + ": wanted a name of its own");
    if (region.offset() != end || region.bytes() == 0 || region.bytes() % kAlignment || region.bytes() > space.bytes() - end)
      return userError(what + ": got bytes [" + Twine(region.offset()) + ", +" + Twine(region.bytes()) + "), wanted a multiple of " +
                       Twine(kAlignment) + " from " + Twine(end) + " on, at most to " + Twine(space.bytes()));
    end += region.bytes();
  }
  if (space.regions_size() && end != space.bytes())
    return userError("space " + Twine(index) + ": regions: got " + Twine(end) + " bytes in all, wanted " + Twine(space.bytes()));
  return Error::success();
}

/// The region that the byte lies in. Requires: regions tile the space, the byte lies in it.
const plan::Region &regionAt(const plan::Space &space, uint64_t offset) {
  return *std::prev(llvm::upper_bound(space.regions(), offset, [](uint64_t o, const plan::Region &r) { return o < r.offset(); }));
}

} // namespace

Error checkRegions(const plan::Plan &plan) {
  for (int s = 0; s < plan.spaces_size(); ++s)
    if (Error error = checkTiling(s, plan.spaces(s)))
      return error;
  for (int b = 0; b < plan.buffers_size(); ++b) {
    const plan::Buffer &buffer = plan.buffers(b);
    const plan::Space &space = plan.spaces(buffer.space());
    if (buffer.bytes() == 0 || space.regions_size() == 0)
      continue;
    const plan::Region &region = regionAt(space, buffer.offset());
    if (buffer.bytes() > region.offset() + region.bytes() - buffer.offset())
      return userError(describeBuffer(plan, b) + ": beyond the end of " + describeRegion(buffer.space(), region));
  }
  for (int s = 0; s < plan.spaces_size(); ++s)
    for (const plan::Region &region : plan.spaces(s).regions())
      if (uint64_t bound = findPeak(plan, s, &region).bytes; region.lower_bound() != bound)
        return userError(describeRegion(s, region) + ": lower bound: got " + Twine(region.lower_bound()) + ", wanted " + Twine(bound));
  return Error::success();
}

} // namespace shardc::check
