// SPDX-License-Identifier: Apache-2.0
// all_gather_start(slice, into?){ranks}, reduce_scatter_start(x){ranks, in_place}, all_reduce_start(x){ranks}: run to their
// end on the stream that issues them, on the communicator's channel of the command. collective_done() does nothing: its
// command's waits do. See ir/ops/Collectives.cpp.
#include "runtime/comm/Communicator.h"
#include "runtime/host/Checks.h"
#include "runtime/host/Fault.h"
#include <cstring>

namespace shardc::host {
namespace {

/// What the collectives share. `n` is the length of a slice; for an all-reduce of the whole.
class CollectiveKernel : public Kernel {
public:
  CollectiveKernel(const Binding &b, int64_t n)
      : communicator_(b.communicator), fault_(b.fault), channel_(b.command->communicator()), n_(n),
        dtype_(b.out[0].dtype), in_(b.in[0].data), out_(b.out[0].data) {}

  void run() final {
    if (!communicator_) // the one slice is the whole
      alone();
    else if (!call())
      fault_->loseRanks();
  }

protected:
  virtual bool call() = 0;
  Communicator *communicator_;
  Fault *fault_;
  unsigned channel_;
  int64_t n_;
  DType dtype_;
  void *in_, *out_;

private:
  void alone() {
    if (in_ != out_)
      std::memcpy(out_, in_, n_ * byteSize(dtype_));
  }
};

class AllGather final : public CollectiveKernel {
  using CollectiveKernel::CollectiveKernel;
  bool call() override { return communicator_->allGather(channel_, in_, out_, n_, dtype_); }
};

class ReduceScatter final : public CollectiveKernel {
  using CollectiveKernel::CollectiveKernel;
  bool call() override { return communicator_->reduceScatter(channel_, in_, out_, n_, dtype_); }
};

class AllReduce final : public CollectiveKernel {
  using CollectiveKernel::CollectiveKernel;
  bool call() override { return communicator_->allReduce(channel_, out_, n_, dtype_); }
};

class Nothing final : public Kernel {
public:
  void run() override {}
};

int64_t rankOf(const Binding &b) { return b.communicator ? b.communicator->rank() : 0; }

bool checkFlat(Checks &c, const Array &a, DType dtype) {
  return c.rank(a, 1) && c.dtype(a, dtype) && c.contiguous(a);
}

/// Attribute `ranks`, the channel, and that operand and result are flat arrays of one type.
bool checkCollective(Checks &c, const Binding &b, int64_t &ranks) {
  int64_t size = b.communicator ? b.communicator->size() : 1;
  unsigned channel = b.command->communicator();
  return c.intAttr("ranks", ranks) &&
         c.that(ranks == size, "attribute ranks: got " + std::to_string(ranks) + ", wanted " + std::to_string(size)) &&
         c.that(!b.communicator || (channel >= 1 && channel < Communicator::kChannels),
                "communicator: got " + std::to_string(channel) + ", wanted 1 to " +
                    std::to_string(Communicator::kChannels - 1)) &&
         checkFlat(c, b.in[0], b.out[0].dtype) && checkFlat(c, b.out[0], b.out[0].dtype);
}

bool checkSum(Checks &c, const Array &a) {
  return c.that(a.dtype != DType::Bool, "type: got bool, wanted numbers");
}

/// `slice` and `whole` have equal slices of n elements, and lie apart, or if `mayNest` as slice r in the whole.
bool checkSlice(Checks &c, const Binding &b, const Array &slice, const Array &whole, int64_t ranks, bool mayNest,
                bool mustNest) {
  int64_t n = slice.dims[0];
  if (!c.that(whole.dims[0] % ranks == 0 && whole.dims[0] / ranks == n,
              "sizes: got a slice of " + std::to_string(n) + " and a whole of " + std::to_string(whole.dims[0]) +
                  " elements, wanted one of " + std::to_string(ranks) + " equal slices"))
    return false;
  bool nested = slice.as<char>() == whole.as<char>() + rankOf(b) * n * byteSize(slice.dtype);
  return c.that(nested || !mustNest, "wanted the slice in its place in the whole") &&
         c.that((nested && mayNest) || !overlap(slice, whole), "slice and whole overlap");
}

} // namespace

BoundKernel bindAllGather(const Binding &b) {
  Checks c(b);
  int64_t ranks;
  if (!(c.arity(1, 2, 1) && checkCollective(c, b, ranks) &&
        checkSlice(c, b, b.in[0], b.out[0], ranks, /*mayNest=*/true, /*mustNest=*/false) &&
        c.that(!c.in(1) || (c.in(1).dtype == b.out[0].dtype && sameArray(c.in(1), b.out[0])),
               "operand 1: wanted the memory of the result")))
    return c.take();
  return std::make_unique<AllGather>(b, b.in[0].dims[0]);
}

BoundKernel bindReduceScatter(const Binding &b) {
  Checks c(b);
  int64_t ranks, inPlace;
  if (!(c.arity(1, 1, 1) && checkCollective(c, b, ranks) && checkSum(c, b.in[0]) && c.intAttr("in_place", inPlace, 0) &&
        checkSlice(c, b, b.out[0], b.in[0], ranks, inPlace != 0, inPlace != 0)))
    return c.take();
  return std::make_unique<ReduceScatter>(b, b.out[0].dims[0]);
}

BoundKernel bindAllReduce(const Binding &b) {
  Checks c(b);
  int64_t ranks;
  if (!(c.arity(1, 1, 1) && checkCollective(c, b, ranks) && checkSum(c, b.in[0]) &&
        c.that(sameArray(b.in[0], b.out[0]), "result: wanted the memory of the operand")))
    return c.take();
  return std::make_unique<AllReduce>(b, b.out[0].dims[0]);
}

BoundKernel bindCollectiveDone(const Binding &b) {
  Checks c(b);
  if (!c.that(b.in.empty() && b.out.empty(), "operands: got some, wanted none"))
    return c.take();
  return std::make_unique<Nothing>();
}

} // namespace shardc::host
