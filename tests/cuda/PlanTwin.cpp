// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/PlanTwin.h"
#include "ir/base/Half.h"
#include "ir/base/Movement.h"
#include "ir/plan/Scalars.h"
#include "runtime/host/BindCommand.h"
#include "runtime/host/Fault.h"
#include "runtime/host/Narrow.h"
#include "tests/cuda/OnDevice.h"
#include <cmath>
#include <cstring>
#include <random>

namespace shardc::test {

struct PlanTwin::Command {
  const plan::Command *command;
  host::Binding onHost, onDevice;
  host::Fault fault;
  std::unique_ptr<host::Kernel> host;
  std::unique_ptr<cuda::Kernel> device;
};

namespace {

llvm::Error checked(cudaError_t code) {
  return code == cudaSuccess ? llvm::Error::success() : llvm::createStringError("%s", cudaGetErrorString(code));
}

/// Bytes that an array's elements lie in, from its data.
std::pair<int64_t, int64_t> extentOf(const host::Array &a) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < a.dims.size(); ++i)
    (a.strides[i] < 0 ? low : high) += (a.dims[i] - 1) * a.strides[i];
  const int64_t size = byteSize(a.dtype);
  return a.numElements() ? std::pair(low * size, (high + 1) * size) : std::pair<int64_t, int64_t>(0, 0);
}

double valueAt(const char *data, DType dtype, int64_t i) {
  switch (dtype) {
  case DType::F32: return reinterpret_cast<const float *>(data)[i];
  case DType::F64: return reinterpret_cast<const double *>(data)[i];
  case DType::F16: return halfToFloat(reinterpret_cast<const uint16_t *>(data)[i]);
  case DType::BF16: return bfloatToFloat(reinterpret_cast<const uint16_t *>(data)[i]);
  case DType::I32: return reinterpret_cast<const int32_t *>(data)[i];
  case DType::I64: return double(reinterpret_cast<const int64_t *>(data)[i]);
  default: return double(reinterpret_cast<const uint8_t *>(data)[i]);
  }
}

void put(char *data, DType dtype, int64_t i, double value) {
  switch (dtype) {
  case DType::F32: reinterpret_cast<float *>(data)[i] = float(value); break;
  case DType::F64: reinterpret_cast<double *>(data)[i] = value; break;
  case DType::F16: reinterpret_cast<uint16_t *>(data)[i] = floatToHalf(float(value)); break;
  case DType::BF16: reinterpret_cast<uint16_t *>(data)[i] = floatToBFloat(float(value)); break;
  case DType::I32: reinterpret_cast<int32_t *>(data)[i] = int32_t(value); break;
  case DType::I64: reinterpret_cast<int64_t *>(data)[i] = int64_t(value); break;
  default: data[i] = char(value);
  }
}

/// Calls f(offset in elements) for each element, in row-major order.
template <typename F> void forEach(const host::Array &a, F f) {
  for (int64_t i = 0, n = a.numElements(); i < n; ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = a.dims.size(); d-- > 0; rest /= a.dims[d])
      at += rest % a.dims[d] * a.strides[d];
    f(at);
  }
}

/// `device`: what lies at the host array's extent there.
void compareArrays(const host::Array &host, const std::vector<char> &device, int64_t low, const std::string &place, Difference &sum) {
  double error = 0, size = 0;
  const char *other = device.data() - low;
  forEach(host, [&](int64_t at) {
    const double wanted = valueAt(host.as<char>(), host.dtype, at), got = valueAt(other, host.dtype, at);
    ++sum.elements;
    if (wanted == got || (std::isnan(wanted) && std::isnan(got)))
      return size += std::isfinite(wanted) ? wanted * wanted : 0, void();
    ++sum.unequal;
    error += (wanted - got) * (wanted - got);
    size += wanted * wanted;
  });
  const double rms = error == 0 ? 0 : std::sqrt(error / size);
  ++sum.commands;
  if (!(rms <= sum.rms)) // NaN counts
    sum.rms = rms, sum.place = place + " -> " + formatDims(host.dims);
}

} // namespace

llvm::Expected<std::unique_ptr<PlanTwin>> PlanTwin::create(const plan::Plan &plan, unsigned seed) {
  std::unique_ptr<PlanTwin> twin(new PlanTwin(plan));
  if (llvm::Error e = twin->allocate())
    return e;
  twin->fill(seed);
  if (llvm::Error e = twin->bind())
    return e;
  return twin;
}

PlanTwin::PlanTwin(const plan::Plan &plan) : plan_(plan) {}

PlanTwin::~PlanTwin() {
  for (void *mirror : mirrors_)
    cudaFree(mirror);
}

llvm::Error PlanTwin::allocate() {
  for (const plan::Space &space : plan_.spaces()) {
    spaces_.emplace_back(space.bytes() + 64);
    mirrors_.push_back(nullptr);
    if (llvm::Error e = checked(cudaMalloc(&mirrors_.back(), space.bytes() + 64)))
      return e;
    if (llvm::Error e = checked(cudaMemset(mirrors_.back(), 0, space.bytes() + 64)))
      return e;
  }
  for (const plan::Buffer &buffer : plan_.buffers()) {
    buffers_.push_back(spaces_[buffer.space()].data() + buffer.offset());
    deviceBuffers_.push_back(static_cast<char *>(mirrors_[buffer.space()]) + buffer.offset());
  }
  return llvm::Error::success();
}

void PlanTwin::fill(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (const plan::Bucket &bucket : plan_.buckets()) {
    const bool factors = DType(bucket.dtype()) == DType::F32 && bucket.name() == "wide"; // scales of norms
    for (uint64_t i = 0; i < bucket.elements(); ++i) {
      const double value = factors ? 1 + 0.1 * normal(random) : 0.1 * normal(random);
      if (bucket.has_master_buffer())
        put(buffers_[bucket.master_buffer()], DType::F32, i, value);
      if (bucket.parameter_buffer() >= 0)
        put(buffers_[bucket.parameter_buffer()], DType(bucket.dtype()), i, value);
    }
  }
  for (const plan::Input &input : plan_.inputs()) {
    const DType dtype = DType(input.dtype());
    int64_t n = 1;
    for (int64_t d : input.dims())
      n *= d;
    for (int64_t i = 0; i < n; ++i)
      put(buffers_[input.buffer()], dtype, i,
          isFloat(dtype)                  ? normal(random)
          : input.high() > input.low() ? double(input.low() + int64_t(random() % uint64_t(input.high() - input.low())))
                                       : 1);
  }
  for (const plan::ConstantData &constant : plan_.constants())
    std::memcpy(buffers_[constant.buffer()], constant.data().data(), constant.data().size());
  auto *scalars = reinterpret_cast<double *>(buffers_[plan_.scalars_buffer()]);
  scalars[kLearningRate] = 1e-3, scalars[kBeta1] = 0.9, scalars[kBeta2] = 0.999, scalars[kEpsilon] = 1e-8;
  scalars[kWeightDecay] = 0.01, scalars[kBiasCorrection1] = 0.1, scalars[kBiasCorrection2] = 0.001, scalars[kMaxGradNorm] = 1;
  scalars[kSeed] = 42, scalars[kFirstUpdate] = 1;
  cudaMemcpy(deviceBuffers_[plan_.scalars_buffer()], scalars, kNumScalars * sizeof(double), cudaMemcpyDefault);
}

llvm::Error PlanTwin::bind() {
  auto at = [&](std::vector<char *> &buffers) {
    auto *scalars = reinterpret_cast<const double *>(buffers[plan_.scalars_buffer()]);
    return host::RankContext{plan_, buffers, scalars, nullptr, 0};
  };
  const host::RankContext onHost = at(buffers_), onDevice = at(deviceBuffers_);
  for (const plan::Program &program : plan_.programs())
    for (const plan::Command &command : program.commands())
      scratch_.resize(std::max<size_t>(scratch_.size(), host::scratchBytes(command).value_or(0) + 64));
  for (const plan::Program &program : plan_.programs())
    for (const plan::Command &command : program.commands()) {
      auto made = std::make_unique<Command>();
      made->command = &command;
      for (auto [context, binding] : {std::pair(&onHost, &made->onHost), std::pair(&onDevice, &made->onDevice)}) {
        auto bound = host::bindOperands(*context, command);
        if (!bound)
          return bound.takeError();
        *binding = std::move(*bound);
      }
      made->onHost.fault = &made->fault;
      made->onHost.scratch = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64;
      made->onHost.scratchBytes = scratch_.size() - 64;
      auto host = host::bindNarrow(made->onHost);
      if (!host)
        return host.takeError();
      made->host = std::move(*host);
      auto device = cuda::findKernel(command.kernel())(made->onDevice, *sharedDevice());
      if (!device)
        return device.takeError();
      made->device = std::move(*device);
      programs_[program.name()].push_back(std::move(made));
    }
  return llvm::Error::success();
}

llvm::Error PlanTwin::run(llvm::StringRef program, std::map<std::string, Difference> &differences) {
  for (std::unique_ptr<Command> &c : programs_[program.str()]) {
    for (auto [arrays, mirrors] : {std::pair(&c->onHost.in, &c->onDevice.in)})
      for (size_t i = 0; i < arrays->size(); ++i)
        if (const host::Array &a = (*arrays)[i]) {
          auto [low, high] = extentOf(a);
          if (llvm::Error e = checked(cudaMemcpy((*mirrors)[i].as<char>() + low, a.as<char>() + low, high - low, cudaMemcpyDefault)))
            return e;
        }
    if (llvm::Error e = c->device->launch(nullptr))
      return e;
    if (llvm::Error e = checked(cudaDeviceSynchronize()))
      return e;
    c->host->run();
    for (size_t i = 0; i < c->onHost.out.size(); ++i)
      if (const host::Array &a = c->onHost.out[i]) {
        auto [low, high] = extentOf(a);
        std::vector<char> device(high - low);
        if (llvm::Error e = checked(cudaMemcpy(device.data(), c->onDevice.out[i].as<char>() + low, high - low, cudaMemcpyDefault)))
          return e;
        const bool adds = c->command->kernel() == "matmul" && c->onHost.in.size() > 2 && c->onHost.in[2];
        std::string key = c->command->kernel() + (adds ? " + c " : " ") + toString(a.dtype).str();
        compareArrays(a, device, low, c->onHost.place, differences[key]);
      }
  }
  return llvm::Error::success();
}

} // namespace shardc::test
