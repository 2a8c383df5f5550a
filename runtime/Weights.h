// SPDX-License-Identifier: Apache-2.0
// The starting values of a plan's parameters.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/ArrayFile.h"
#include "runtime/ElementSource.h"
#include "runtime/Executor.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace shardc {

class ModelFiles;
struct BucketPart;

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

/// The starting values of all parameters, found and checked once for all ranks of a process.
class StartingWeights {
public:
  /// Errors: a file is missing, has changed since the plan was made, lacks a parameter, or has another shape. `plan`
  /// outlives the result.
  static llvm::Expected<StartingWeights> open(const plan::Plan &plan, const WeightsOptions &options);
  StartingWeights(StartingWeights &&);
  ~StartingWeights();

  /// Parameters that have no values and are initialised, in the plan's order.
  llvm::ArrayRef<std::string> initialised() const { return initialised_; }

  /// Fills what this rank has of each parameter; padding between them stays as it is. Several ranks may do so at once.
  /// Errors: of the executor's device.
  llvm::Error fill(Executor &executor) const;

private:
  struct Value { ///< of one parameter
    enum { Zero, FromFile, Initial } kind = Zero;
    ElementSource elements;
  };
  StartingWeights(const plan::Plan &plan, const WeightsOptions &options);
  struct Room;
  /// Fills what `parts` have of parameter `index`: values are made once for all. 16-bit parts have the same values, rounded.
  llvm::Error fillParameter(int index, llvm::ArrayRef<BucketPart> parts, Room &room) const;
  /// Writes elements [first, first + count) of parameter `index`. Requires: dtype is none of 16 bits.
  void write(int index, int64_t first, int64_t count, char *to, DType dtype) const;
  /// nullopt: there are none.
  llvm::Expected<std::optional<Value>> find(const plan::Parameter &parameter);

  const plan::Plan *plan_;
  double deviation_ = 0;
  uint64_t seed_;
  std::unique_ptr<ArrayFile> file_; ///< one of the two is used
  std::unique_ptr<ModelFiles> model_;
  std::vector<Value> values_; ///< by parameter
  std::vector<std::string> initialised_;
};

} // namespace shardc
