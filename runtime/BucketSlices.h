// SPDX-License-Identifier: Apache-2.0
// Which part of a bucket a rank has in memory, and how all of it passes by on rank 0.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"

namespace shardc {

class Communicator;

/// Elements [begin, end) of a bucket; `data` is where element `begin` lies.
struct BucketPart {
  char *data = nullptr;
  int64_t begin = 0, end = 0;
};

/// The parameters that this rank's executor holds: the whole bucket or slice r, as the buffer's size says. Requires: the
/// bucket has a parameter buffer.
BucketPart heldParameters(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket);
/// The gradients that are sums over all ranks once the micro-steps are done. Stage 0: all, else slice r. Requires: the
/// bucket has a gradient buffer.
BucketPart heldGradients(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket);

/// Shows rank 0 all elements of a bucket in ascending order, in pieces [first, first + count). Where ranks hold slices, they
/// send them on channel 0, a small piece at a time, so that nobody needs room for a bucket. All ranks call it, with what
/// they hold.
llvm::Error visitBucket(const plan::Bucket &bucket, const BucketPart &held, Communicator &communicator,
                        llvm::function_ref<void(const char *data, int64_t first, int64_t count)> visit);

} // namespace shardc
