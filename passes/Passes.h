// SPDX-License-Identifier: Apache-2.0
// Every pass: what it does, what it needs, what holds afterwards. Pass `insert-gradients` is `insertGradients`
// in InsertGradients.cpp; Passes.def lists them for shardc-opt.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/Support/Error.h"
#include "passes/Options.h"

namespace shardc {

// Cleanup, at any level.

/// Removes ops without effect whose results nobody uses.
llvm::Error dce(Graph &graph, const CompileOptions &options);
/// Merges ops that compute the same from the same (not dropout, not what has effects).
llvm::Error cse(Graph &graph, const CompileOptions &options);
/// Local algebra that never changes a bit of any result: views of views, x + 0, transposes into products, 16-bit floats widened and
/// rounded again.
llvm::Error simplify(Graph &graph, const CompileOptions &options);

// Imported.

/// Puts together what exporters break up: rms_norm, layer_norm, gelu, attention, cross_entropy. Each pattern verifies axes, shapes
/// and constants.
llvm::Error raise(Graph &graph, const CompileOptions &options);
/// Decides the type of every value (`--precision`): fp64 turns every f32 into f64; tf32 marks products and attention; bf16 and fp16 see precision/Narrow.h. Rounding is explicit: a value
/// is rounded to its type where it is defined. Requires: raised ops, which keep their statistics in f32.
llvm::Error setPrecision(Graph &graph, const CompileOptions &options);
/// Applies `--dropout`: sets every ratio, removes dropout of ratio 0.
llvm::Error setDropout(Graph &graph, const CompileOptions &options);

/// A product takes what follows it: bias, a summand of its result's dims (residual), ReLU. The sum is rounded once. Leaves dead ops.
/// Requires: types decided.
llvm::Error productEpilogues(Graph &graph, const CompileOptions &options);

/// Says the bucket (index and name) of every parameter, in order of first use. By default a bucket is a layer: the shortest name
/// prefix that ends in a number. A parameter without one joins the layer of its first user; else look-up tables are a bucket, a lone norm joins
/// the layer used before it, and the rest goes together before the first layer, and behind each; such buckets are called by the modules
/// in them (nameGroups). With `--bucket SIZE` as many as fit, at least one. Frozen parameters have buckets of their own.
llvm::Error assignBuckets(Graph &graph, const CompileOptions &options);

/// Products of one value with weights that are neighbours in their bucket (q, k and v; wi_0 and wi_1), their biases neighbours too or
/// absent, become one product, and its results slices of its result. Requires: assign-buckets.
llvm::Error mergeProducts(Graph &graph, const CompileOptions &options);

// Imported -> Step. The first pass under such a line changes the level.

/// Reverse mode from output "loss_sum" (fp16: scaled, see precision/LossScale.h) to every trainable parameter: adds outputs "grad:NAME".
/// A parameter without a path has none.
llvm::Error insertGradients(Graph &graph, const CompileOptions &options);
/// attention_grad leaves dq, dk and dv (or dk and dv) as the one array that a merged product wants, instead of their concat.
llvm::Error joinGradients(Graph &graph, const CompileOptions &options);
/// Where logits take more than 128 MiB: their product, cross entropy and both gradients go through the rows chunk by chunk, so that the logits
/// of the whole batch never exist. Chunks depend on shapes alone; sums over them are f32.
llvm::Error chunkLoss(Graph &graph, const CompileOptions &options);
/// Sums of gradients become accumulation in place: matmul and embedding_grad take the other summand as `acc`. Where such an op's 16-bit
/// result is only widened for a sum, or to be kept, it leaves its sums unrounded (wide = 1) instead.
llvm::Error accumulateInPlace(Graph &graph, const CompileOptions &options);

// Step -> Sharded.

/// Cuts parameters and gradients over the ranks (design: section 6). Requires: assign-buckets; level step, or imported: then only
/// parameters are gathered. Leaves: collectives, each `start` followed by its `done`; gradients and the loss as states (zero/State.h).
/// `options.microStep` says which program this is.
llvm::Error zeroPartition(Graph &graph, const CompileOptions &options);
/// Adds the update: squares of every bucket's gradient, clip factor, one optimizer op a bucket; on this rank's slices. Reads and writes
/// states alone.
llvm::Error insertOptimizer(Graph &graph, const CompileOptions &options);

// Sharded -> Scheduled.

/// Joins pointwise ops of one iteration space into `fused` ops, and those with norms, softmax and sums over the same rows into
/// `fused_rows` ops (RowForm.h), whose sums of columns `column_sums` finishes; afterwards no other pointwise op is left.
llvm::Error fuse(Graph &graph, const CompileOptions &options);
/// Inserts `copy` where a kernel cannot read a strided view.
llvm::Error materialize(Graph &graph, const CompileOptions &options);

// Scheduled: order only. All know the machine (`options.machine`), all keep every op.

/// Starts each gather before its first use: in order of first use, as early as `options.prefetchLimit` bytes of gathered buckets
/// permit, but no earlier than is needed to arrive in time. A limit that is too small means no prefetch.
llvm::Error gatherPrefetch(Graph &graph, const CompileOptions &options);
/// Starts each reduction directly after what makes the last of its operands. Waits come late: at the end of the list, or, where
/// a full bucket ends with the wait, as soon as it has arrived, and before a third is in flight.
llvm::Error reduceEarly(Graph &graph, const CompileOptions &options);
/// Lowers the largest sum of live bytes where that costs no predicted time, also if the link were half as fast. `options.prefetchLimit`
/// holds.
llvm::Error peakOrder(Graph &graph, const CompileOptions &options);

} // namespace shardc
