// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Tuner.h"
#include "ir/base/Error.h"
#include "llvm/ADT/StringSet.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include "runtime/cuda/ProductTimer.h"
#include <cstring>

namespace shardc::cuda {

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(AlgorithmBytes));

static cublasLtMatmulAlgo_t algorithmOf(const AlgorithmBytes &bytes) {
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, bytes.data(), sizeof(algorithm));
  return algorithm;
}

static AlgorithmBytes bytesOf(const cublasLtMatmulAlgo_t &algorithm) {
  AlgorithmBytes bytes;
  std::memcpy(bytes.data(), &algorithm, sizeof(algorithm));
  return bytes;
}

/// "NVIDIA H200, 132 SMs, cuBLASLt 130100: ": what the fastest algorithm depends on beside the problem.
static llvm::Expected<std::string> placeOfKeys(const Device &device) {
  cudaDeviceProp properties;
  if (llvm::Error error = check(cudaGetDeviceProperties(&properties, device.ordinal()), "cudaGetDeviceProperties"))
    return error;
  return (llvm::Twine(properties.name) + ", " + llvm::Twine(device.multiprocessors()) + " SMs, cuBLASLt " +
          llvm::Twine(uint64_t(cublasLtGetVersion())) + ": ")
      .str();
}

/// Multiplications and additions from which a product is timed. Smaller ones take a few microseconds by any algorithm, so
/// noise would choose it, and with it the bits.
constexpr int64_t kWorthTiming = 100'000'000;

void Tuner::add(LtProduct &product, const Operands &operands, KernelScratch workspace) {
  const Problem &problem = product.problem();
  if (problem.batch * problem.m * problem.n * problem.k < kWorthTiming)
    return;
  products_.push_back({&product, operands, workspace, product.problem().describe()});
}

llvm::Expected<Tuning> Tuner::decide() {
  if (path_.empty())
    return Tuning();
  Tuning known = Tuning::read(path_), used, found;
  std::optional<ProductTimer> timer;
  llvm::StringSet<> seen;
  for (const Open &open : products_) {
    if (!seen.insert(open.key).second)
      continue;
    if (auto bytes = known.find(open.key); bytes && open.product->takes(algorithmOf(*bytes))) {
      used.set(open.key, *bytes);
      continue;
    }
    if (!timer) {
      timer.emplace(arena_);
      if (llvm::Error error = timer->open())
        return error;
    }
    ++timed_;
    auto fastest = timer->fastest(*open.product, open.operands, open.workspace.data());
    if (!fastest)
      return fastest.takeError();
    found.set(open.key, bytesOf(*fastest));
  }
  if (found.empty())
    return used;
  if (llvm::Error error = found.mergeInto(path_)) { // the next run could not find them: it would give other bits
    llvm::consumeError(std::move(error));
    return used;
  }
  used.add(found);
  return used;
}

llvm::Error Tuner::share(Tuning &tuning) {
  std::string text = tuning.text();
  int64_t bytes = int64_t(text.size());
  if (!communicator_->broadcast(0, &bytes, sizeof(bytes), 0))
    return groupError(*communicator_, Exit::Fault);
  text.resize(size_t(bytes));
  if (!communicator_->broadcast(0, text.data(), bytes, 0))
    return groupError(*communicator_, Exit::Fault);
  tuning = Tuning::parse(text);
  return llvm::Error::success();
}

llvm::Error Tuner::settle() {
  auto place = placeOfKeys(device_);
  if (!place)
    return place.takeError();
  for (Open &open : products_)
    open.key = *place + open.key;
  Tuning tuning;
  if (!communicator_ || communicator_->rank() == 0) {
    auto decided = decide();
    if (!decided)
      return decided.takeError();
    tuning = std::move(*decided);
  }
  if (communicator_ && communicator_->size() > 1)
    if (llvm::Error error = share(tuning))
      return error;
  for (const Open &open : products_)
    if (auto bytes = tuning.find(open.key); bytes && open.product->takes(algorithmOf(*bytes)))
      open.product->use(algorithmOf(*bytes));
  products_.clear();
  return llvm::Error::success();
}

} // namespace shardc::cuda
