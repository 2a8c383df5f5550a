// SPDX-License-Identifier: Apache-2.0
// The text form of a graph: dump, test input and reproducer in one. `parseGraph(print(g))` prints the same.
// The grammar is in ir/README.md.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/Support/Error.h"

namespace shardc {

void printGraph(const Graph &graph, llvm::raw_ostream &os);
void printOp(const Op &op, llvm::raw_ostream &os);
std::string toString(const Graph &graph);

/// Checks syntax, names, operand counts, and that the written types are the inferred ones. `place` (a file name) starts each message.
llvm::Expected<std::unique_ptr<Graph>> parseGraph(llvm::StringRef text, llvm::StringRef place);

} // namespace shardc
