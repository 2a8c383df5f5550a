// SPDX-License-Identifier: Apache-2.0
// The picture of one space of a plan, from top to bottom: words, legend, live bytes, strips, map.
#pragma once

#include "ir/plan/map/Scene.h"
#include "ir/plan/map/SvgWriter.h"

namespace shardc::map {

constexpr double kWidth = 1200, kLeft = 64, kMapWidth = 890, kPile = kLeft + kMapWidth + 8,
                 kPileWidth = 18;
constexpr double kCurveHeight = 130, kStrip = 17, kMapHeight = 510, kRow = 20;
constexpr const char *kRed = "#b3001b", *kFree = "#f1f3f5", *kGrid = "#c9ced3", *kInk = "#20262c";

/// Title, the table of what lives at the peak and why, and the legend; returns where the panes may
/// begin.
double drawWords(const Scene &scene, SvgWriter &svg, double y);
/// Live bytes over time; strips that say what computes; the map; what lives at the peak, by layer.
/// Returns where they end.
double drawPanes(const Scene &scene, SvgWriter &svg, double y);

} // namespace shardc::map
