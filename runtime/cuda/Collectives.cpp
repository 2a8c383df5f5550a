// SPDX-License-Identifier: Apache-2.0
// all_gather_start(slice, into?){ranks, to}, reduce_scatter_start(x){ranks, in_place}, all_reduce_start(x){ranks} on the stream
// that issues them, on the communicator's channel of the command; collective_done() does nothing: its command's waits do. See
// ir/ops/Collectives.cpp.
#include "ir/base/Error.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Round.h"
#include <cassert>

namespace shardc::cuda {
namespace {

enum class Kind { AllGather, ReduceScatter, AllReduce };

class Collective final : public Kernel {
public:
  /// `n` is the length of a slice; for an all-reduce of the whole.
  Collective(Kind kind, const host::Binding &b, int64_t n, DeviceCommunicator *communicator)
      : kind_(kind), communicator_(communicator), channel_(b.command->communicator()), n_(n), dtype_(b.out[0].dtype),
        in_(b.in[0].data), out_(b.out[0].data) {
    if (kind == Kind::AllGather && b.in[0].dtype != dtype_) { // the rounded slice is gathered in place
      in_ = static_cast<char *>(out_) + (communicator ? communicator->rank() : 0) * n * byteSize(dtype_);
      round_ = {b.in[0].as<float>(), {in_, ElementType(int(dtype_))}, n};
    }
  }

  llvm::Error launch(cudaStream_t stream) override {
    if (n_ == 0)
      return llvm::Error::success();
    if (round_.from)
      if (llvm::Error e = check(launchRound(round_, stream), "launchRound"))
        return e;
    if (!communicator_) { // the one slice is the whole
      if (in_ == out_)
        return llvm::Error::success();
      return check(cudaMemcpyAsync(out_, in_, n_ * byteSize(dtype_), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    }
    switch (kind_) {
    case Kind::AllGather:
      return communicator_->allGather(channel_, in_, out_, n_, dtype_, stream);
    case Kind::ReduceScatter:
      return communicator_->reduceScatter(channel_, in_, out_, n_, dtype_, stream);
    case Kind::AllReduce:
      break;
    }
    return communicator_->allReduce(channel_, out_, n_, dtype_, stream);
  }

private:
  Kind kind_;
  DeviceCommunicator *communicator_; ///< null: one rank
  unsigned channel_;
  int64_t n_;
  DType dtype_;
  void *in_, *out_;
  Round round_ = {}; ///< of the slice, first; null: none
};

class Nothing final : public Kernel {
public:
  llvm::Error launch(cudaStream_t) override { return llvm::Error::success(); }
};

/// What a command may be is the host's to say: its kernel is bound too, for the sake of its checks, and forgotten.
llvm::Error checkAsHost(const host::Binding &b) {
  host::Bind bind = host::findKernel(b.command->kernel());
  assert(bind);
  return bind(b).takeError();
}

BoundKernel bindCollective(Kind kind, const host::Binding &b, Device &device) {
  if (llvm::Error e = checkAsHost(b))
    return e;
  const host::Array &slice = kind == Kind::AllGather ? b.in[0] : b.out[0];
  return std::make_unique<Collective>(kind, b, slice.dims[0], device.communicator());
}

} // namespace

BoundKernel bindAllGather(const host::Binding &b, Device &device) { return bindCollective(Kind::AllGather, b, device); }
BoundKernel bindReduceScatter(const host::Binding &b, Device &device) { return bindCollective(Kind::ReduceScatter, b, device); }
BoundKernel bindAllReduce(const host::Binding &b, Device &device) { return bindCollective(Kind::AllReduce, b, device); }

BoundKernel bindCollectiveDone(const host::Binding &b, Device &) {
  if (llvm::Error e = checkAsHost(b))
    return e;
  return std::make_unique<Nothing>();
}

} // namespace shardc::cuda
