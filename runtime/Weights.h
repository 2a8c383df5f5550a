// SPDX-License-Identifier: Apache-2.0
// Parameters of a plan: where they lie in memory, their starting values, and how they are saved.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"
#include "runtime/Safetensors.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace shardc {

/// Where starting values come from.
struct WeightsOptions {
  std::string planPath; ///< the model's path may be relative to the plan's folder
  std::string file;     ///< --weights: .safetensors by parameter name, or the model itself; "": the
                        ///< model that the plan names
  /// For parameters that have no values there; nullopt: that is an error. Zeros, or, with a
  /// deviation above 0: parameters of rank >= 2 are drawn from normal(0, deviation), a 1-D "bias"
  /// is 0, any other 1-D parameter (a norm's scale) is 1.
  std::optional<double> deviation;
  uint64_t seed = 0;
};

/// Fills all parameters; padding between them stays as it is. Returns the names of those that were
/// initialised, in the plan's order. Errors: a file is missing, has changed since the plan was
/// made, lacks a parameter, or has another shape.
llvm::Expected<std::vector<std::string>> loadWeights(const plan::Plan &plan, Executor &executor,
                                                     const WeightsOptions &options);

/// All parameters under their names, as views of the executor's memory.
std::vector<ArrayToWrite> parameterArrays(const plan::Plan &plan, Executor &executor);
/// The gradients of the trainable ones, each element times `scale`.
std::vector<ArrayToWrite> gradientArrays(const plan::Plan &plan, Executor &executor, double scale);

} // namespace shardc
