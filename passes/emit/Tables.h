// SPDX-License-Identifier: Apache-2.0
// The tables of a plan that are not buffers or commands.
#pragma once

#include "passes/emit/Commands.h"

namespace shardc::emit {

void writeBuckets(const Buckets &buckets, const Storage &storage, const CompileOptions &options, plan::Plan &plan);
void writeParameters(const Graph &graph, const Buckets &buckets, plan::Plan &plan);
/// Inputs of `graph` that the plan does not list yet.
void writeInputs(const Graph &graph, const Storage &storage, plan::Plan &plan);
/// The graph's outputs but states.
void writeOutputs(const Graph &graph, const CommandWriter &writer, llvm::StringRef program, plan::Plan &plan);
/// `Ref.version` of every operand and output.
void writeVersions(plan::Plan &plan);

} // namespace shardc::emit
