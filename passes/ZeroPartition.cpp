// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "passes/Passes.h"
#include "passes/zero/State.h"

namespace shardc {

llvm::Error zeroPartition(Graph &graph, const CompileOptions &options) {
  bool trains = graph.level == Level::Step;
  if (uint64_t cuts = uint64_t(options.ranks) * options.accumulate; trains && cuts > 1 && !graph.attrs.getInt("loss_divisible", 1))
    return userError("loss: it is no sum over rows, so it cannot be cut into " + llvm::Twine(cuts) +
                         " parts: got ranks x accumulate = " + llvm::Twine(cuts) + ", wanted 1",
                     "give --logits and --labels for a loss that can, or compile with --ranks 1 --accumulate 1");
  if (trains && !(graph.output("loss_sum") && graph.output("loss_count")))
    return userError("graph " + graph.name + ": a step without loss: wanted outputs loss_sum and loss_count");
  if (llvm::Error error = requireBuckets(graph))
    return error;
  Buckets buckets = bucketLayout(graph, options.ranks);
  if (options.stage() >= 3)
    zero::gatherParameters(graph, buckets, options);
  if (trains) {
    zero::reduceGradients(graph, buckets, options);
    zero::sumLoss(graph, options);
  }
  graph.level = Level::Sharded;
  return llvm::Error::success();
}

} // namespace shardc
