// SPDX-License-Identifier: Apache-2.0
// Runs one op in a small graph: loss = sum over chosen results of sum(result * fixed weights).
#pragma once

#include "ir/graph/Builder.h"
#include "tests/ops/Cases.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc::test {

using Values = llvm::DenseMap<const Value *, Tensor>;
/// Executes one op; by the reference (`evaluateOp`) or by the kernels.
using RunOp = llvm::Expected<llvm::SmallVector<Tensor, 1>> (*)(const Op &,
                                                               llvm::ArrayRef<const Tensor *>);

/// The graph of a case, with float operands of `dtype`.
struct CaseGraph {
  std::unique_ptr<Graph> graph;
  Op *op = nullptr;
  Values feeds;                    ///< of inputs and parameters
  std::vector<Value *> parameters; ///< operand i's, null where it is none
};

/// Float operands that are no constants become parameters, called p0, p1 ... by operand.
/// With a loss, output "loss_sum" is set where a chosen result is float.
llvm::Expected<CaseGraph> buildCase(const OpCase &c, DType dtype);

/// Executes the ops of the graph in order; stops after `last` (null: never).
llvm::Expected<Values> interpret(const Graph &graph, const Values &feeds, RunOp run,
                                 const Value *last = nullptr);

/// Runs an op of any level by its host kernel; pointwise ops as a fused group of one.
/// Operands are handed over strided in every way that the op says its kernel takes, if `strided`.
/// `runKernel` has all scalars of the step 0.
llvm::Expected<llvm::SmallVector<Tensor, 1>> runKernel(const Op &op,
                                                       llvm::ArrayRef<const Tensor *> operands);
llvm::Expected<llvm::SmallVector<Tensor, 1>> runKernelWith(const Op &op,
                                                           llvm::ArrayRef<const Tensor *> operands,
                                                           llvm::ArrayRef<double> scalars);
llvm::Expected<llvm::SmallVector<Tensor, 1>>
runStridedKernel(const Op &op, llvm::ArrayRef<const Tensor *> operands);

/// "" or where two tensors differ by more than `tolerance` (1 + |wanted|) somewhere.
std::string compare(const Tensor &got, const Tensor &wanted, double tolerance);

} // namespace shardc::test
