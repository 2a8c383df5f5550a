// SPDX-License-Identifier: Apache-2.0
#include "runtime/BucketSlices.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include <algorithm>
#include <cassert>

namespace shardc {

static BucketPart heldPart(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket, int32_t buffer,
                           bool onlySliceIsValid) {
  const int64_t elements = bucket.elements(), slice = elements / std::max<int64_t>(plan.ranks(), 1);
  const int64_t size = byteSize(DType(bucket.dtype())), begin = int64_t(executor.rank()) * slice;
  char *data = static_cast<char *>(executor.buffer(buffer));
  if (plan.buffers(buffer).bytes() < uint64_t(elements * size))
    return {data, begin, begin + slice};
  if (onlySliceIsValid)
    return {data + begin * size, begin, begin + slice};
  return {data, 0, elements};
}

BucketPart heldParameters(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket) {
  return heldPart(plan, executor, bucket, bucket.parameter_buffer(), /*onlySliceIsValid=*/false);
}

BucketPart heldGradients(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket) {
  bool onlySliceIsValid = plan.ranks() > 1 && plan.zero() == 1;
  return heldPart(plan, executor, bucket, bucket.gradient_buffer(), onlySliceIsValid);
}

llvm::Error visitBucket(const plan::Bucket &bucket, const BucketPart &held, Communicator &communicator,
                        llvm::function_ref<void(const char *, int64_t, int64_t)> visit) {
  const int64_t elements = bucket.elements(), size = byteSize(DType(bucket.dtype()));
  const unsigned rank = communicator.rank();
  if (held.end - held.begin == elements) {
    if (rank == 0)
      visit(held.data, 0, elements);
    return llvm::Error::success();
  }
  constexpr int64_t kPiece = 1 << 18;
  const int64_t slice = elements / communicator.size();
  std::unique_ptr<char[]> others(new char[std::min(kPiece, slice) * size]);
  for (unsigned owner = 0; owner < communicator.size(); ++owner)
    for (int64_t done = 0; done < slice; done += kPiece) {
      int64_t n = std::min(kPiece, slice - done);
      char *piece = owner == rank ? held.data + done * size : others.get();
      if (!communicator.broadcast(/*channel=*/0, piece, n * size, owner))
        return groupError(communicator);
      if (rank == 0)
        visit(piece, owner * slice + done, n);
    }
  return llvm::Error::success();
}

} // namespace shardc
