// SPDX-License-Identifier: Apache-2.0
// All that pictures of one space of a plan are drawn from.
#pragma once

#include "ir/plan/map/Curve.h"
#include "ir/plan/map/Parts.h"
#include "ir/plan/map/Story.h"
#include <algorithm>

namespace shardc::map {

struct Scene {
  /// Keeps a reference to the plan.
  Scene(const plan::Plan &plan, uint32_t space)
      : plan(plan), index(space), lives(livesOf(plan)), parts(partsOf(plan, lives)),
        bands(bandsOf(plan, parts)), curve(liveCurve(plan, space)), axis(plan, space),
        story(storyOf(plan, space, parts, lives, bands)),
        positions(std::max<uint64_t>(1, parts.ofCommand.size())) {}

  const plan::Space &space() const { return plan.spaces(int(index)); }

  const plan::Plan &plan;
  uint32_t index;
  std::vector<Life> lives;
  Parts parts;
  std::vector<Band> bands;
  std::vector<Live> curve;
  AddressAxis axis;
  Story story;
  uint64_t positions; ///< commands of all programs; at least 1
};

} // namespace shardc::map
