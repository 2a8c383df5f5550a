// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/OnDevice.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "runtime/host/Fault.h"
#include <cstring>

namespace shardc::test {

cuda::Device *sharedDevice() {
  static cuda::Device *device = [] {
    if (!cuda::Device::whyNone().empty())
      return static_cast<cuda::Device *>(nullptr);
    auto created = cuda::Device::create(0);
    if (created)
      return created->release(); // lives as long as the process
    ADD_FAILURE() << llvm::toString(created.takeError());
    return static_cast<cuda::Device *>(nullptr);
  }();
  return device;
}

DeviceMemory::DeviceMemory(const void *from, size_t bytes) : bytes_(bytes) {
  EXPECT_EQ(cudaMalloc(&data_, std::max<size_t>(bytes, 1)), cudaSuccess);
  EXPECT_EQ(from ? cudaMemcpy(data_, from, bytes, cudaMemcpyDefault) : cudaMemset(data_, 0, bytes), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); // streams of tests do not wait for the default one
}
DeviceMemory::~DeviceMemory() { cudaFree(data_); }
void DeviceMemory::get(void *to) const { EXPECT_EQ(cudaMemcpy(to, data_, bytes_, cudaMemcpyDefault), cudaSuccess); }

std::string messageOf(llvm::Error error) { return error ? llvm::toString(std::move(error)) : std::string(); }

std::vector<float> floats(Executor &executor, uint32_t buffer, int64_t n) {
  std::vector<float> values(n);
  llvm::cantFail(executor.read(buffer, 0, values.data(), 4 * n));
  return values;
}

llvm::Error launchAndWait(cuda::Kernel &kernel) {
  cuda::Device &device = *sharedDevice();
  cudaStream_t stream;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  llvm::Error error = kernel.launch(stream);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaStreamDestroy(stream);
  cuda::FaultRecord fault;
  EXPECT_EQ(cudaMemcpy(&fault, device.fault(), sizeof fault, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemset(device.fault(), 0, sizeof fault), cudaSuccess);
  if (!error && fault.raised)
    return llvm::createStringError("%s", device.message(fault).c_str());
  return error;
}

namespace {

/// The memory of a prepared kernel on the device; its binding points there.
class Moved {
public:
  explicit Moved(PreparedKernel &prepared) : prepared_(prepared) {
    for (auto *memories : {&prepared.in, &prepared.out})
      for (KernelMemory &memory : *memories)
        blocks_.push_back({&memory, std::make_unique<DeviceMemory>(memory.bytes.data(), memory.bytes.size() * 8)});
    for (host::Array &array : prepared.binding.in)
      array.data = moved(array.data);
    for (host::Array &array : prepared.binding.out)
      array.data = moved(array.data);
  }
  void back() {
    for (auto &[memory, block] : blocks_)
      block->get(memory->bytes.data());
  }

private:
  void *moved(void *data) const {
    for (auto &[memory, block] : blocks_)
      if (data == memory->bytes.data())
        return block->data();
    return nullptr; // absent
  }
  PreparedKernel &prepared_;
  std::vector<std::pair<KernelMemory *, std::unique_ptr<DeviceMemory>>> blocks_;
};

/// Runs a prepared kernel once on device memory, and brings results back.
llvm::Error launchOnDevice(PreparedKernel &prepared, llvm::ArrayRef<double> scalars) {
  host::Fault unused;
  DeviceMemory deviceScalars(scalars.data(), scalars.size() * sizeof(double));
  Moved moved(prepared);
  prepared.binding.scalars = static_cast<const double *>(deviceScalars.data());
  prepared.binding.fault = &unused;
  cuda::Bind bind = cuda::findKernel(prepared.command.kernel());
  if (!bind)
    return llvm::createStringError("no CUDA kernel '%s'", prepared.command.kernel().c_str());
  auto kernel = bind(prepared.binding, *sharedDevice());
  if (!kernel)
    return kernel.takeError();
  llvm::Error error = launchAndWait(**kernel);
  moved.back();
  return error;
}

bool sameBits(const Tensor &a, const Tensor &b) {
  return std::memcmp(a.bytes(), b.bytes(), a.numElements() * byteSize(a.dtype())) == 0;
}

} // namespace

llvm::Expected<Tensors> runOnDevice(const Op &op, TensorArgs operands, llvm::ArrayRef<double> scalars, bool strided) {
  if (!hasKernel(op))
    return evaluateOp(op, operands);
  Tensors first;
  for (int time = 0; time < 2; ++time) {
    std::unique_ptr<PreparedKernel> prepared = prepareKernel(op, operands, strided);
    if (llvm::Error error = launchOnDevice(*prepared, scalars))
      return error;
    Tensors results = prepared->results();
    if (time == 0)
      first = std::move(results);
    else
      for (unsigned i = 0; i < first.size(); ++i)
        if (!sameBits(first[i], results[i]))
          return llvm::createStringError("%s: result %u: two runs differ", op.mnemonic().str().c_str(), i);
  }
  return first;
}

} // namespace shardc::test
