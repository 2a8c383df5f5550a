// SPDX-License-Identifier: Apache-2.0
// Which part of a bucket a rank has in memory, and how all of it passes by on rank 0.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"
#include <optional>

namespace shardc {

class Communicator;

/// Elements [begin, end) of a bucket, in memory of an executor.
struct BucketPart {
  Executor *executor;
  uint32_t buffer;
  uint64_t offset; ///< bytes from the buffer's start to element `begin`
  int64_t begin, end;
  DType dtype; ///< of the elements there

  /// Where element `begin` lies; null on a device.
  char *data() const {
    char *start = static_cast<char *>(executor->buffer(buffer));
    return start ? start + offset : nullptr;
  }
};

/// The parameters that this rank's executor holds: the whole bucket or slice r, as the buffer's size says. Of 16-bit parameters that are
/// trained: their master.
BucketPart heldParameters(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket);
/// What this rank holds of the 16-bit parameters that are made of a master; nullopt: nothing, or there is no master.
std::optional<BucketPart> heldRounded(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket);
/// The gradients that are sums over all ranks once the micro-steps are done. Stage 0: all, else slice r. Requires: the
/// bucket has a gradient buffer.
BucketPart heldGradients(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket);

/// Elements that pass through host memory at one time, on their way from or to others' memory.
constexpr int64_t kBucketPiece = 1 << 18;

/// Shows rank 0 all elements of a bucket in ascending order, in pieces [first, first + count). Where ranks hold slices, they
/// send them on channel 0, a small piece at a time, so that nobody needs room for a bucket. All ranks call it, with what
/// they hold.
llvm::Error visitBucket(const plan::Bucket &bucket, const BucketPart &held, Communicator &communicator,
                        llvm::function_ref<void(const char *data, int64_t first, int64_t count)> visit);

} // namespace shardc
