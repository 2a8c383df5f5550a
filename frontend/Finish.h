// SPDX-License-Identifier: Apache-2.0
// The last steps of an import: what is not needed goes, trainables and layers are decided.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// Erases ops that no output needs, and parameters without an op.
void eraseUnused(Graph &graph);

/// Trainable: reaches `loss_sum` through float values of differentiable ops, and matches no glob. A
/// glob that matches nothing, or a graph that has nothing to train, is an error.
llvm::Error chooseTrainables(Graph &graph, llvm::ArrayRef<std::string> freeze);

/// The shortest prefix of a parameter's name that ends in a number: "encoder.block.0"; "" if there
/// is none.
std::string layerOfName(llvm::StringRef parameter);

/// Op::layer: of a parameter's op from its name, of ops that read parameters from those, of others
/// from the scopes in their place, else from the operand that was made last.
void assignLayers(Graph &graph);

/// Attrs low, high, ignore of inputs that index tables or are class labels.
void boundInputs(Graph &graph);

} // namespace shardc
