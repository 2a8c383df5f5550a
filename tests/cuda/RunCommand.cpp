// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/RunCommand.h"
#include "ir/base/Movement.h"
#include "ir/ops/Reference.h"
#include "passes/emit/CommandAttr.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/host/Fault.h"
#include <cstring>
#include <random>

namespace shardc::test {
namespace {

plan::Command commandOf(const TestCommand &test) {
  plan::Command command;
  command.set_kernel(test.kernel);
  for (auto &[name, value] : test.attrs)
    addAttr(command, name, value);
  return command;
}

host::Array arrayOf(DType dtype, const Dims &dims, const Dims &strides, void *data, int64_t offset) {
  host::Array array;
  array.dtype = dtype;
  array.dims = dims, array.strides = strides;
  array.data = static_cast<char *>(data) + offset * byteSize(dtype);
  return array;
}

/// On memory that `allocate(bytes, from)` gives.
template <typename Allocate>
host::Binding bindingOf(const TestCommand &test, const plan::Command &command, Allocate allocate) {
  host::Binding binding;
  binding.command = &command;
  binding.place = test.kernel;
  for (const OperandView &in : test.in) {
    binding.in.emplace_back();
    if (in.storage)
      binding.in.back() = arrayOf(in.storage->dtype(), in.dims, in.strides,
                                  allocate(in.storage->numBytes(), in.storage->bytes()), in.offset);
  }
  for (unsigned o = 0; o < test.out.size(); ++o) {
    const Type &type = test.out[o];
    auto pair = llvm::find_if(test.inPlace, [&](auto &p) { return p.first == o; });
    void *data = pair != test.inPlace.end() ? binding.in[pair->second].data : allocate(type.numBytes(), nullptr);
    binding.out.push_back(arrayOf(type.dtype, type.dims, rowMajorStrides(type.dims), data, 0));
  }
  return binding;
}

llvm::Expected<Tensors> deviceOnce(const TestCommand &test) {
  auto command = DeviceCommand::bind(test);
  if (!command)
    return command.takeError();
  if (llvm::Error error = launchAndWait((*command)->kernel()))
    return error;
  return (*command)->results();
}

Tensor inDouble(const Tensor &tensor) {
  return isFloat(tensor.dtype()) ? fromDoubles(DType::F64, tensor.dims(), toDoubles(tensor)) : tensor;
}

} // namespace

llvm::Expected<std::unique_ptr<DeviceCommand>> DeviceCommand::bind(const TestCommand &test) {
  auto made = std::make_unique<DeviceCommand>();
  auto &memory = made->memory_;
  made->command_ = commandOf(test);
  made->binding_ = bindingOf(test, made->command_, [&](size_t bytes, const void *from) {
    memory.push_back(std::make_unique<DeviceMemory>(from, bytes));
    return memory.back()->data();
  });
  memory.push_back(std::make_unique<DeviceMemory>(test.scalars.data(), test.scalars.size() * sizeof(double)));
  made->binding_.scalars = static_cast<const double *>(memory.back()->data());
  cuda::Bind bind = cuda::findKernel(test.kernel);
  if (!bind)
    return llvm::createStringError("no CUDA kernel '%s'", test.kernel.c_str());
  auto kernel = bind(made->binding_, *sharedDevice());
  if (!kernel)
    return kernel.takeError();
  made->kernel_ = std::move(*kernel);
  return made;
}

Tensors DeviceCommand::results() const {
  Tensors results;
  for (const host::Array &array : binding_.out) {
    Tensor result(array.dtype, array.dims);
    EXPECT_EQ(cudaMemcpy(result.mutableData<char>(), array.data, result.numBytes(), cudaMemcpyDefault), cudaSuccess);
    results.push_back(std::move(result));
  }
  return results;
}

int64_t DeviceCommand::bytes() const {
  int64_t bytes = 0;
  for (llvm::ArrayRef<host::Array> arrays : {llvm::ArrayRef(binding_.in), llvm::ArrayRef(binding_.out)})
    for (const host::Array &array : arrays)
      bytes += array ? array.numElements() * byteSize(array.dtype) : 0;
  return bytes;
}

llvm::Expected<Tensors> runByDevice(const TestCommand &test) {
  auto first = deviceOnce(test);
  if (!first)
    return first;
  auto second = deviceOnce(test);
  if (!second)
    return second;
  for (unsigned i = 0; i < first->size(); ++i)
    if (std::memcmp((*first)[i].bytes(), (*second)[i].bytes(), (*first)[i].numBytes()) != 0)
      return llvm::createStringError("%s: result %u: two runs differ", test.kernel.c_str(), i);
  return first;
}

llvm::Expected<Tensors> runByHost(const TestCommand &given) {
  TestCommand test = given;
  for (OperandView &in : test.in)
    if (in.storage)
      in.storage = inDouble(*in.storage);
  for (Type &type : test.out)
    if (isFloat(type.dtype))
      type.dtype = DType::F64;
  plan::Command command = commandOf(test);
  std::vector<std::vector<double>> memory;
  host::Binding binding = bindingOf(test, command, [&](size_t bytes, const void *from) {
    memory.emplace_back(bytes / sizeof(double) + 1);
    if (from)
      std::memcpy(memory.back().data(), from, bytes);
    return memory.back().data();
  });
  host::Fault fault;
  binding.fault = &fault;
  binding.scalars = test.scalars.data();
  auto kernel = host::findKernel(test.kernel)(binding);
  if (!kernel)
    return kernel.takeError();
  (*kernel)->run();
  if (fault.raised())
    return llvm::createStringError("%s", fault.message().c_str());
  Tensors results;
  for (const host::Array &array : binding.out) {
    Tensor result(array.dtype, array.dims);
    std::memcpy(result.mutableData<char>(), array.data, result.numBytes());
    results.push_back(std::move(result));
  }
  return results;
}

void expectSame(const TestCommand &test, double tolerance) {
  auto wanted = runByHost(test), got = runByDevice(test);
  if (!wanted)
    ADD_FAILURE() << "host: " << llvm::toString(wanted.takeError());
  if (!got)
    ADD_FAILURE() << "device: " << llvm::toString(got.takeError());
  if (!wanted || !got)
    return;
  for (unsigned i = 0; i < wanted->size(); ++i)
    EXPECT_EQ(compare(inDouble((*got)[i]), (*wanted)[i], tolerance), "") << test.kernel << ", result " << i;
}

Tensor randomTensor(DType dtype, Dims dims, unsigned seed, double size) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, size);
  std::vector<double> values(numElements(dims));
  for (double &value : values)
    value = normal(random);
  return fromDoubles(dtype, dims, values);
}

Tensor attentionMask(const Dims &dims) {
  Tensor mask(DType::Bool, dims);
  for (int64_t i = 0; i < mask.numElements(); ++i)
    mask.mutableData<uint8_t>()[i] = (i * 7 + i / 5) % 3 != 0 && !(dims[2] > 1 && i / dims[3] == 1);
  return mask;
}

double attentionTolerance(DType dtype) {
  return dtype == DType::BF16 ? 2e-2 : dtype == DType::F16 ? 3e-3 : dtype == DType::F32 ? 2e-5 : 1e-11;
}

} // namespace shardc::test
