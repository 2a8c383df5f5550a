// SPDX-License-Identifier: Apache-2.0
// The colours of kinds of buffers in pictures: apart for colour-blind eyes too (after Okabe and
// Ito).
#pragma once

#include "ir/plan/map/Curve.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::map {

struct KindColor {
  plan::BufferKind kind;
  const char *color, *shade; ///< neighbouring layers take turns
  const char *label;
};
/// In the order in which they are stacked: what stays first, what comes and goes on top.
constexpr KindColor kKindColors[] = {
    {plan::OPTIMIZER_STATE, "#a58ac9", "#957abb", "optimizer state"},
    {plan::PARAMETER, "#3fa57c", "#33946c", "parameters"},
    {plan::CONSTANT, "#8c98a4", "#7e8a97", "constants"},
    {plan::SCALAR, "#5f6b77", "#53606c", "scalars"},
    {plan::INPUT, "#d3c046", "#c4b136", "inputs"},
    {plan::GRADIENT, "#ea8a2e", "#db7b1d", "gradients"},
    {plan::COMMUNICATION, "#d1739f", "#c26390", "buckets in flight"},
    {plan::ACTIVATION, "#4a9fd8", "#77b9e6", "activations"},
    {plan::WORKSPACE, "#b9bfc6", "#a9b0b8", "workspace"},
};
inline const KindColor &colorOf(plan::BufferKind kind) {
  return *llvm::find_if(kKindColors, [&](const KindColor &color) { return color.kind == kind; });
}
static_assert(std::size(kKindColors) == kKinds, "a colour for each kind");

} // namespace shardc::map
