// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/Call.h"
#include "ir/base/Half.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "runtime/host/Fault.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>
#include <random>

namespace shardc::test {

static plan::Attr &added(Call &call, llvm::StringRef name) {
  plan::Attr &attr = call.attrs.emplace_back();
  attr.set_name(name.str());
  return attr;
}
Call &Call::with(llvm::StringRef name, int64_t value) {
  added(*this, name).set_i(value);
  return *this;
}
Call &Call::with(llvm::StringRef name, double value) {
  added(*this, name).set_f(value);
  return *this;
}
Call &Call::with(llvm::StringRef name, llvm::StringRef value) {
  added(*this, name).set_s(value.str());
  return *this;
}
Call &Call::with(llvm::StringRef name, llvm::ArrayRef<int64_t> value) {
  plan::Attr &attr = added(*this, name);
  attr.mutable_ints();
  for (int64_t v : value)
    attr.mutable_ints()->add_v(v);
  return *this;
}

Tensor randomFloats(llvm::ArrayRef<int64_t> dims, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Tensor tensor(DType::F64, dims);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    float value = bfloatToFloat(floatToBFloat(normal(engine)));
    tensor.mutableData<double>()[i] = std::fabs(value) < 1e-3f ? 0 : value; // no subnormals of f16
  }
  return tensor;
}

Tensor randomIndices(llvm::ArrayRef<int64_t> dims, int64_t low, int64_t high, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int64_t> uniform(low, high - 1);
  Tensor tensor(DType::I64, dims);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.mutableData<int64_t>()[i] = uniform(engine);
  return tensor;
}

namespace {

DType stored(DType dtype, bool wide, DType storage) {
  if (dtype != DType::F64)
    return dtype;
  return wide && byteSize(storage) == 2 ? DType::F32 : storage;
}

std::string replaced(const std::string &text, llvm::StringRef word, DType dtype) {
  return llvm::join(llvm::split(text, word), toString(dtype));
}

std::unique_ptr<PreparedKernel> prepare(const Call &call, DType storage) {
  auto prepared = std::make_unique<PreparedKernel>();
  auto &[command, in, out, binding] = *prepared;
  command.set_kernel(call.kernel);
  for (const plan::Attr &attr : call.attrs) {
    plan::Attr &own = *command.add_attrs() = attr;
    if (attr.value_case() == plan::Attr::kS)
      own.set_s(replaced(replaced(attr.s(), "STORED", storage), "WIDE",
                         byteSize(storage) == 2 ? DType::F32 : storage));
  }
  binding.command = &command;
  binding.place = call.kernel;
  in.reserve(call.in.size());
  out.reserve(call.out.size());
  auto identity = [](size_t rank) {
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    return order;
  };
  for (const CallResult &result : call.out)
    out.emplace_back(stored(result.dtype, result.wide, storage), result.dims, identity(result.dims.size()),
                     1);
  for (unsigned i = 0; i < call.in.size(); ++i) {
    const CallOperand &operand = call.in[i];
    binding.in.emplace_back();
    if (operand.absent)
      continue;
    Tensor value = operand.value;
    if (value.dtype() == DType::F64)
      value = fromDoubles(stored(DType::F64, operand.wide, storage), value.dims(), toDoubles(value));
    auto taken = llvm::find_if(call.inPlace, [&](auto pair) { return pair.second == i; });
    if (taken != call.inPlace.end()) {
      out[taken->first].put(value);
      binding.in.back() = out[taken->first].array;
      continue;
    }
    in.emplace_back(value.dtype(), value.dims(),
                    operand.order.empty() ? identity(value.rank()) : operand.order, operand.gap);
    in.back().put(value);
    binding.in.back() = in.back().array;
  }
  for (KernelMemory &memory : out)
    binding.out.push_back(memory.array);
  return prepared;
}

llvm::SmallVector<Tensor, 1> onHost(const Call &call, llvm::ArrayRef<double> scalars) {
  std::unique_ptr<PreparedKernel> prepared = prepare(call, DType::F64);
  host::Fault fault;
  prepared->binding.fault = &fault;
  prepared->binding.scalars = scalars.data();
  auto kernel = host::findKernel(call.kernel)(prepared->binding);
  if (!kernel) {
    ADD_FAILURE() << "host: " << llvm::toString(kernel.takeError());
    return {};
  }
  (*kernel)->run();
  EXPECT_FALSE(fault.raised());
  return prepared->results();
}

double epsilon(DType storage) {
  return storage == DType::F64 ? 1e-12 : storage == DType::F32 ? 1e-5 : storage == DType::F16 ? 2e-3 : 1.6e-2;
}

} // namespace

void expectLikeHost(const Call &call, double slack, llvm::ArrayRef<double> given) {
  std::vector<double> scalars(given.begin(), given.end());
  scalars.resize(kNumScalars);
  llvm::SmallVector<Tensor, 1> wanted = onHost(call, scalars);
  for (DType storage : {DType::F32, DType::F64, DType::BF16, DType::F16}) {
    SCOPED_TRACE(call.kernel + " in " + toString(storage).str());
    llvm::SmallVector<Tensor, 1> first;
    for (int time = 0; time < 2; ++time) {
      std::unique_ptr<PreparedKernel> prepared = prepare(call, storage);
      if (llvm::Error error = launchOnDevice(*prepared, scalars)) {
        ADD_FAILURE() << llvm::toString(std::move(error));
        return;
      }
      llvm::SmallVector<Tensor, 1> got = prepared->results();
      if (time == 1) {
        for (unsigned i = 0; i < got.size(); ++i)
          EXPECT_TRUE(got[i] == first[i]) << "result " << i << ": two runs differ";
        continue;
      }
      first = got;
      for (unsigned i = 0; i < got.size() && i < wanted.size(); ++i) {
        Tensor w = wanted[i];
        if (w.dtype() == DType::F64) // compared as it is stored, within an absolute and relative bound
          w = fromDoubles(got[i].dtype(), w.dims(), toDoubles(w));
        EXPECT_EQ(compare(got[i], w, slack * epsilon(storage)), "") << "result " << i;
      }
    }
  }
}

std::string complaint(const Call &call) {
  std::unique_ptr<PreparedKernel> prepared = prepare(call, DType::F32);
  return llvm::toString(launchOnDevice(*prepared, std::vector<double>(kNumScalars)));
}

} // namespace shardc::test
