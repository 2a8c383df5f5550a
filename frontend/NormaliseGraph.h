// SPDX-License-Identifier: Apache-2.0
// Scopes and order of an ONNX graph: every name defined once and before its use, or an error that
// names it.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace onnx {
class GraphProto;
class NodeProto;
} // namespace onnx

namespace shardc {

/// "node 'l0/MatMul' (MatMul)", or by its first output where it has no name.
std::string describeNode(const onnx::NodeProto &node);

/// Sorts the nodes of `graph` and of its subgraphs topologically (a sorted graph keeps its order)
/// and drops inputs of the top level that are initializers. Errors, which begin with `place`:
/// duplicate or undefined names, cycles (printed), sparse initializers, a graph without outputs.
/// Linear in the size of the graph.
llvm::Error normaliseGraph(onnx::GraphProto &graph, llvm::StringRef place);

} // namespace shardc
