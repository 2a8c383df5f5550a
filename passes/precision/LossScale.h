// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling of fp16: gradients are those of unit x scale x the summed loss. The scale lives on the device (zero::Role::LossScale)
// and starts at kInitialLossScale; the unit is a constant of the plan, a power of two that makes a mean of the sum, so that gradients keep
// their size whatever the batch is. Op `loss_scale` of the update divides by both.
#pragma once

#include "passes/Options.h"

namespace shardc {
class Builder;
class Graph;
class Value;
} // namespace shardc

namespace shardc::precision {

constexpr double kInitialLossScale = 65536;

inline bool scalesLoss(const CompileOptions &options) { return options.precision == Precision::Fp16; }

/// What the gradient of the summed loss starts from, a scalar of its type, where `b` stands; leaves the graph's attribute `loss_unit` and
/// output `gradient_scale`, the same number in f64. Requires: outputs loss_sum and loss_count.
Value *scaledSeed(Builder &b, const CompileOptions &options);

/// Requires: scaledSeed.
double lossUnit(const Graph &graph);

} // namespace shardc::precision
