// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/map/Map.h"
#include "ir/plan/map/SvgPicture.h"

using namespace llvm;

namespace shardc {

void printMapSvg(const plan::Plan &plan, raw_ostream &os) {
  std::string body; // its height is said first
  raw_string_ostream bodyStream(body);
  map::SvgWriter svg(bodyStream);
  double y = 0;
  for (int space = 0; space < plan.spaces_size(); ++space) {
    if (plan.spaces(space).bytes() == 0)
      continue;
    map::Scene scene(plan, uint32_t(space));
    y = map::drawPanes(scene, svg, map::drawWords(scene, svg, y));
  }
  map::SvgWriter frame(os);
  frame.begin(map::kWidth, y);
  os << body;
  frame.end();
}

} // namespace shardc
