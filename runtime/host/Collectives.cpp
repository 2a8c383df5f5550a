// SPDX-License-Identifier: Apache-2.0
// all_gather_start(slice, into?){ranks, to}, reduce_scatter_start(x){ranks, in_place}, all_reduce_start(x){ranks}: run to their
// end on the stream that issues them, on the communicator's channel of the command. collective_done() does nothing: its
// command's waits do. See ir/ops/Collectives.cpp.
#include "ir/base/DTypeDispatch.h"
#include "runtime/comm/Communicator.h"
#include "runtime/host/Checks.h"
#include "runtime/host/Fault.h"
#include "runtime/host/Parallel.h"
#include <cstring>

namespace shardc::host {
namespace {

int64_t rankOf(const Binding &b) { return b.communicator ? b.communicator->rank() : 0; }

/// What the collectives share. `n` is the length of a slice; for an all-reduce of the whole.
class CollectiveKernel : public Kernel {
public:
  CollectiveKernel(const Binding &b, int64_t n)
      : communicator_(b.communicator), fault_(b.fault), channel_(b.command->communicator()), n_(n),
        dtype_(b.out[0].dtype), in_(b.in[0].data), out_(b.out[0].data) {}

  void run() final {
    prepare();
    if (!communicator_) // the one slice is the whole
      alone();
    else if (!call())
      fault_->loseRanks();
  }

protected:
  virtual void prepare() {}
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

/// Of a slice that is rounded into its place first.
class RoundedGather final : public CollectiveKernel {
public:
  RoundedGather(const Binding &b, int64_t n)
      : CollectiveKernel(b, n), slice_(b.in[0].as<float>()),
        place_(b.out[0].as<char>() + rankOf(b) * n * byteSize(b.out[0].dtype)) {
    in_ = place_;
  }

private:
  void prepare() override { dtype_ == DType::F16 ? round<HalfValue>() : round<BFloatValue>(); }
  bool call() override { return communicator_->allGather(channel_, in_, out_, n_, dtype_); }
  template <typename T> void round() const {
    T *to = reinterpret_cast<T *>(place_);
    parallelFor(n_, 1 << 14, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = slice_[i];
    });
  }
  const float *slice_;
  char *place_;
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

bool checkFlat(Checks &c, const Array &a, DType dtype) {
  return c.rank(a, 1) && c.dtype(a, dtype) && c.contiguous(a);
}

/// Attribute `ranks`, the channel, and that operand and result are flat arrays of one type (if it `rounds`: f32 and a 16-bit float).
bool checkCollective(Checks &c, const Binding &b, int64_t &ranks, bool rounds = false) {
  int64_t size = b.communicator ? b.communicator->size() : 1;
  unsigned channel = b.command->communicator();
  return c.intAttr("ranks", ranks) &&
         c.that(ranks == size, "attribute ranks: got " + std::to_string(ranks) + ", wanted " + std::to_string(size)) &&
         c.that(!b.communicator || (channel >= 1 && channel < Communicator::kChannels),
                "communicator: got " + std::to_string(channel) + ", wanted 1 to " +
                    std::to_string(Communicator::kChannels - 1)) &&
         checkFlat(c, b.in[0], rounds ? wideType(b.out[0].dtype) : b.out[0].dtype) && checkFlat(c, b.out[0], b.out[0].dtype);
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
  std::string to;
  bool rounds = c.has("to");
  if (!(c.arity(1, 2, 1) && (!rounds || c.stringAttr("to", to)) &&
        c.that(!rounds || (isHalf(b.out[0].dtype) && to == toString(b.out[0].dtype)), "attribute to: wanted the result's 16-bit float") &&
        checkCollective(c, b, ranks, rounds) && checkSlice(c, b, b.in[0], b.out[0], ranks, /*mayNest=*/!rounds, /*mustNest=*/false) &&
        c.that(!c.in(1) || (c.in(1).dtype == b.out[0].dtype && sameArray(c.in(1), b.out[0])),
               "operand 1: wanted the memory of the result")))
    return c.take();
  if (rounds)
    return std::make_unique<RoundedGather>(b, b.in[0].dims[0]);
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
