// SPDX-License-Identifier: Apache-2.0
#include "runtime/BucketSlices.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include <algorithm>
#include <cassert>

namespace shardc {

static BucketPart heldPart(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket, uint32_t buffer,
                           DType dtype, bool onlySliceIsValid = false) {
  const int64_t elements = bucket.elements(), slice = elements / std::max<int64_t>(plan.ranks(), 1);
  const int64_t size = byteSize(dtype), begin = int64_t(executor.rank()) * slice;
  if (plan.buffers(buffer).bytes() < uint64_t(elements * size))
    return {&executor, buffer, 0, begin, begin + slice, dtype};
  if (onlySliceIsValid)
    return {&executor, buffer, uint64_t(begin * size), begin, begin + slice, dtype};
  return {&executor, buffer, 0, 0, elements, dtype};
}

BucketPart heldParameters(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket) {
  DType dtype = DType(bucket.dtype());
  return bucket.has_master_buffer() ? heldPart(plan, executor, bucket, bucket.master_buffer(), wideType(dtype))
                                    : heldPart(plan, executor, bucket, uint32_t(bucket.parameter_buffer()), dtype);
}

std::optional<BucketPart> heldRounded(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket) {
  if (!bucket.has_master_buffer() || bucket.parameter_buffer() < 0)
    return std::nullopt;
  return heldPart(plan, executor, bucket, uint32_t(bucket.parameter_buffer()), DType(bucket.dtype()));
}

BucketPart heldGradients(const plan::Plan &plan, Executor &executor, const plan::Bucket &bucket) {
  bool onlySliceIsValid = plan.ranks() > 1 && plan.zero() == 1;
  DType dtype = DType(bucket.has_gradient_dtype() ? bucket.gradient_dtype() : bucket.dtype());
  return heldPart(plan, executor, bucket, uint32_t(bucket.gradient_buffer()), dtype, onlySliceIsValid);
}

namespace {

using Visit = llvm::function_ref<void(const char *, int64_t, int64_t)>;

/// A part in pieces of host memory.
class Pieces {
public:
  Pieces(const BucketPart &held, int64_t size) : held_(held), size_(size), data_(held.data()) {}
  /// `count` elements from `first` on, counted from the part's start: where they lie, or copied to `room`.
  llvm::Expected<char *> at(int64_t first, int64_t count, char *room) {
    if (data_)
      return data_ + first * size_;
    if (llvm::Error error = held_.executor->read(held_.buffer, held_.offset + first * size_, room, count * size_))
      return error;
    return room;
  }

private:
  const BucketPart &held_;
  int64_t size_;
  char *data_;
};

} // namespace

llvm::Error visitBucket(const plan::Bucket &bucket, const BucketPart &held, Communicator &communicator, Visit visit) {
  const int64_t elements = bucket.elements(), size = byteSize(held.dtype);
  const unsigned rank = communicator.rank();
  const bool isWhole = held.end - held.begin == elements;
  if (isWhole && rank != 0)
    return llvm::Error::success();
  if (char *data = held.data(); isWhole && data) {
    visit(data, 0, elements);
    return llvm::Error::success();
  }
  const int64_t slice = isWhole ? elements : elements / communicator.size();
  std::unique_ptr<char[]> room(new char[std::min(kBucketPiece, slice) * size]);
  Pieces pieces(held, size);
  for (unsigned owner = 0; owner < (isWhole ? 1 : communicator.size()); ++owner)
    for (int64_t done = 0; done < slice; done += kBucketPiece) {
      int64_t n = std::min(kBucketPiece, slice - done);
      char *piece = room.get();
      if (owner == rank) {
        auto own = pieces.at(done, n, room.get());
        if (!own)
          return own.takeError();
        piece = *own;
      }
      if (!isWhole && !communicator.broadcast(/*channel=*/0, piece, n * size, owner))
        return groupError(communicator);
      if (rank == 0)
        visit(piece, owner * slice + done, n);
    }
  return llvm::Error::success();
}

} // namespace shardc
