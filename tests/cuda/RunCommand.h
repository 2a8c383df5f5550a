// SPDX-License-Identifier: Apache-2.0
// One command on arrays of any type and layout: by its CUDA kernel, and by its host kernel in f64 for comparison.
#pragma once

#include "ir/graph/Attr.h"
#include "ir/graph/Type.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/Kernel.h"
#include "tests/cuda/OnDevice.h"

namespace shardc::test {

/// An operand: a view of a tensor, dense unless strides are given. Without dims: absent.
struct OperandView {
  std::optional<Tensor> storage;
  Dims dims, strides;
  int64_t offset = 0; ///< in elements

  OperandView() = default;
  OperandView(Tensor tensor) : storage(tensor), dims(tensor.dims()), strides(rowMajorStrides(tensor.dims())) {}
  OperandView(Tensor tensor, Dims dims, Dims strides, int64_t offset)
      : storage(std::move(tensor)), dims(std::move(dims)), strides(std::move(strides)), offset(offset) {}
};

struct TestCommand {
  std::string kernel;
  Attrs attrs = {};
  std::vector<OperandView> in = {};
  std::vector<Type> out = {};
  std::vector<std::pair<unsigned, unsigned>> inPlace = {}; ///< result, operand
  std::vector<double> scalars = std::vector<double>(kNumScalars);
};

/// A command bound to device memory of its own.
class DeviceCommand {
public:
  static llvm::Expected<std::unique_ptr<DeviceCommand>> bind(const TestCommand &test);
  llvm::Error launch(cudaStream_t stream) { return kernel_->launch(stream); }
  cuda::Kernel &kernel() { return *kernel_; }
  /// What lies in the results now.
  llvm::SmallVector<Tensor, 1> results() const;
  int64_t bytes() const; ///< of operands and results, each once

private:
  plan::Command command_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  host::Binding binding_;
  std::unique_ptr<cuda::Kernel> kernel_;
};

/// Results of the CUDA kernel, run twice: an error if a bit differs, or if a fault was raised.
llvm::Expected<llvm::SmallVector<Tensor, 1>> runByDevice(const TestCommand &command);
/// Results of the host kernel, every float operand and result in f64 (values are those that the types hold).
llvm::Expected<llvm::SmallVector<Tensor, 1>> runByHost(const TestCommand &command);

/// Runs both; each result within tolerance (1 + |wanted|), and EXPECTs it.
void expectSame(const TestCommand &command, double tolerance);

/// About `size` in size, rounded to the type; the same for the same seed.
Tensor randomTensor(DType dtype, Dims dims, unsigned seed, double size = 1);

/// bool[b, h, q, k], any of them 1: a third of the keys hidden, here and there; row 1 sees none where the mask has rows.
Tensor attentionMask(const Dims &dims);
/// Of results of attention in a type; twice as much for gradients.
double attentionTolerance(DType dtype);

} // namespace shardc::test
