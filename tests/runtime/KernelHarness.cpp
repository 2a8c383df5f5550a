// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/KernelHarness.h"
#include "ir/base/Error.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Reference.h"
#include "gtest/gtest.h"
#include "passes/emit/CommandAttr.h"
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#ifdef _OPENMP
#include <omp.h>
#endif

static std::atomic<uint64_t> allocationCount;

void *operator new(size_t bytes) {
  ++allocationCount;
  if (void *p = std::malloc(bytes ? bytes : 1))
    return p;
  std::abort();
}
void *operator new[](size_t bytes) { return operator new(bytes); }
void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return operator new(bytes); }
void *operator new[](size_t bytes, const std::nothrow_t &) noexcept { return operator new(bytes); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete[](void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
void operator delete[](void *p, size_t) noexcept { std::free(p); }

namespace shardc::host {

uint64_t allocations() { return allocationCount; }

std::string messageOf(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : std::string();
}

KernelRun::KernelRun(llvm::StringRef kernel) {
  command_.set_kernel(kernel.str());
  binding_.command = &command_;
  binding_.scalars = scalars_;
  binding_.fault = &fault_;
  binding_.place = "here";
}

KernelRun &KernelRun::attr(llvm::StringRef name, Attr value) {
  addAttr(command_, name, value);
  return *this;
}

Array KernelRun::array(DType dtype, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> strides) {
  Array a;
  a.dtype = dtype;
  a.dims.assign(dims.begin(), dims.end());
  a.strides.assign(strides.begin(), strides.end());
  int64_t elements = numElements(dims) ? 1 : 0;
  for (size_t i = 0; elements && i < dims.size(); ++i)
    elements += (dims[i] - 1) * strides[i];
  memory_.push_back(std::make_unique<char[]>(std::max<int64_t>(1, elements * byteSize(dtype))));
  std::memset(memory_.back().get(), 0x55, elements * byteSize(dtype));
  a.data = memory_.back().get();
  return a;
}

/// Calls f(element of the dense order, element of the strided array).
template <typename F> void forElements(const Array &a, F f) {
  Dims dense = rowMajorStrides(a.dims);
  for (int64_t i = 0, n = a.numElements(); i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < a.dims.size(); ++d)
      at += i / dense[d] % a.dims[d] * a.strides[d];
    f(i, at);
  }
}

KernelRun &KernelRun::in(const Tensor &tensor, Lay lay) {
  Dims strides = rowMajorStrides(tensor.dims());
  if (lay != Lay::Dense) {
    int64_t step = lay == Lay::LastStrided ? 3 : 1;
    for (size_t d = strides.size(); d-- > 0;) {
      strides[d] = step;
      step = step * tensor.dims()[d] + 2;
    }
  }
  Array a = array(tensor.dtype(), tensor.dims(), strides);
  int64_t size = byteSize(a.dtype);
  forElements(a, [&](int64_t i, int64_t at) {
    std::memcpy(a.as<char>() + at * size, tensor.data<char>() + i * size, size);
  });
  binding_.in.push_back(a);
  return *this;
}

KernelRun &KernelRun::broadcast(const Tensor &tensor, llvm::ArrayRef<int64_t> dims) {
  in(tensor);
  Array &a = binding_.in.back();
  a.strides = shardc::broadcastStrides(tensor.dims(), dims);
  a.dims.assign(dims.begin(), dims.end());
  return *this;
}

KernelRun &KernelRun::absent() {
  binding_.in.push_back(Array());
  return *this;
}

KernelRun &KernelRun::out(DType dtype, llvm::ArrayRef<int64_t> dims) {
  binding_.out.push_back(array(dtype, dims, rowMajorStrides(dims)));
  return *this;
}

KernelRun &KernelRun::outOver(unsigned input) {
  binding_.out.push_back(binding_.in[input]);
  return *this;
}

llvm::Error KernelRun::bind() {
  Bind bindKernel = findKernel(command_.kernel());
  if (!bindKernel)
    return userError("no such kernel");
  BoundKernel kernel = bindKernel(binding_);
  if (!kernel)
    return kernel.takeError();
  kernel_ = std::move(*kernel);
  return llvm::Error::success();
}

llvm::Error KernelRun::run() {
  kernel_->run();
  if (!fault_.raised())
    return llvm::Error::success();
  std::string message = fault_.message();
  fault_.clear();
  return userError(message);
}

llvm::Error KernelRun::bindAndRun() {
  if (llvm::Error e = bind())
    return e;
  return run();
}

Tensor KernelRun::result(unsigned i) const {
  const Array &a = binding_.out[i];
  Tensor t(a.dtype, a.dims);
  std::memcpy(t.mutableData<char>(), a.data, t.numBytes());
  return t;
}

Tensor noise(DType dtype, llvm::ArrayRef<int64_t> dims, uint64_t seed, double low, double high) {
  std::vector<double> values(numElements(dims));
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (double &v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = low + (high - low) * double(state >> 40) / double(1 << 24);
    if (!isFloat(dtype))
      v = std::floor(v);
    else // so that f32 and f64 hold the same value
      v = double(float(v));
  }
  if (isFloat(dtype))
    return fromDoubles(dtype, dims, values);
  Tensor t(dtype, dims);
  for (size_t i = 0; i < values.size(); ++i)
    switch (dtype) {
    case DType::I64:
      t.mutableData<int64_t>()[i] = int64_t(values[i]);
      break;
    case DType::I32:
      t.mutableData<int32_t>()[i] = int32_t(values[i]);
      break;
    default:
      t.mutableData<uint8_t>()[i] = uint8_t(values[i]);
    }
  return t;
}

Tensor asFloats(const Tensor &tensor, DType dtype) {
  if (!tensor.bytes() || tensor.dtype() != DType::F64)
    return tensor;
  return fromDoubles(dtype, tensor.dims(), toDoubles(tensor));
}

void expectNear(const Tensor &a, const Tensor &b, double tolerance, llvm::StringRef what) {
  ASSERT_EQ(a.dims(), b.dims()) << what.str();
  for (int64_t i = 0; i < a.numElements(); ++i) {
    double x = a.asDouble(i), y = b.asDouble(i);
    if (std::isnan(y) || std::isinf(y)) {
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)))
          << what.str() << ", element " << i << ": got " << x << ", wanted " << y;
      continue;
    }
    double allowed = isFloat(a.dtype()) ? tolerance * (1 + std::fabs(y)) : 0;
    ASSERT_LE(std::fabs(x - y), allowed)
        << what.str() << ", element " << i << " of " << formatDims(a.dims()) << ": got " << x
        << ", wanted " << y;
  }
}

void expectEqual(const Tensor &a, const Tensor &b, llvm::StringRef what) {
  ASSERT_EQ(a.dims(), b.dims()) << what.str();
  ASSERT_EQ(std::memcmp(a.bytes(), b.bytes(), a.numBytes()), 0) << what.str();
}

namespace {

/// A kernel run for the case, with the results that `types` say. `over` places result over operand.
std::unique_ptr<KernelRun> prepare(const OpCase &test, llvm::ArrayRef<Tensor> in,
                                   llvm::ArrayRef<Type> types, Lay lay,
                                   llvm::ArrayRef<InPlace> over) {
  auto run = std::make_unique<KernelRun>(test.def.mnemonic);
  for (const Tensor &t : in)
    t.bytes() ? run->in(t, lay) : run->absent();
  for (auto &[name, value] : test.attrs)
    run->attr(name, value);
  for (size_t r = 0; r < types.size(); ++r) {
    int operand = -1;
    for (const InPlace &place : over)
      if (place.result == int(r) && size_t(place.operand) < in.size() && in[place.operand].bytes())
        operand = place.operand;
    operand >= 0 ? run->outOver(operand) : run->out(types[r].dtype, types[r].dims);
  }
  return run;
}

void onThreads(int threads, llvm::function_ref<void()> body) {
#ifdef _OPENMP
  int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  body();
  omp_set_num_threads(before);
#else
  body();
#endif
}

} // namespace

void expectReference(const OpCase &test) {
  for (DType dtype : {DType::F64, DType::F32}) {
    std::vector<Tensor> in;
    std::vector<const Tensor *> args;
    for (const Tensor &t : test.in)
      // f64 scalars of the update stay what they are
      in.push_back(t.bytes() && (t.dims() == llvm::ArrayRef<int64_t>{32} || t.rank() == 0) &&
                           test.def.effect
                       ? t
                       : asFloats(t, dtype));
    Graph graph;
    std::vector<Value *> operands;
    for (const Tensor &t : in) {
      args.push_back(t.bytes() ? &t : nullptr);
      if (!t.bytes()) {
        operands.push_back(nullptr);
        continue;
      }
      Op *input =
          graph.create(kInput, {}, {{"name", std::string("x")}}, {Type(t.dtype(), t.dims())});
      operands.push_back(input->result());
    }
    Builder builder(graph);
    llvm::Expected<Op *> op = builder.create(test.def, operands, test.attrs);
    ASSERT_TRUE(bool(op)) << messageOf(op.takeError());
    llvm::Expected<Tensors> wanted = evaluateOp(**op, args);
    ASSERT_TRUE(bool(wanted)) << messageOf(wanted.takeError());
    Types types;
    for (unsigned i = 0; i < (*op)->numResults(); ++i)
      types.push_back((*op)->result(i)->type());

    struct Variant {
      Lay lay;
      llvm::SmallVector<InPlace> over;
      const char *name;
    };
    std::vector<Variant> variants;
    llvm::SmallVector<InPlace> all(test.def.inPlace.begin(), test.def.inPlace.end());
    if (test.def.inPlaceRequired)
      variants.push_back({Lay::Dense, all, "in place"});
    else
      variants.push_back({Lay::Dense, {}, "dense"});
    if (!test.def.inPlaceRequired)
      for (const InPlace &place : all)
        if (size_t(place.operand) < in.size() && in[place.operand].bytes() &&
            size_t(place.result) < types.size() &&
            types[place.result] == Type(in[place.operand].dtype(), in[place.operand].dims()))
          variants.push_back({Lay::Dense, {place}, "in place"});
    if (test.def.layouts != kContiguous && !test.def.inPlaceRequired)
      variants.push_back({Lay::Gaps, {}, "with gaps"});
    if (test.def.layouts & kStrided)
      variants.push_back({Lay::LastStrided, {}, "strided"});

    for (const Variant &variant : variants) {
      std::string what =
          std::string(test.def.mnemonic) + " " + toString(dtype).str() + " " + variant.name;
      auto once = prepare(test, in, types, variant.lay, variant.over);
      auto again = prepare(test, in, types, variant.lay, variant.over);
      onThreads(1, [&] { ASSERT_EQ(messageOf(once->bindAndRun()), "") << what; });
      onThreads(3, [&] { ASSERT_EQ(messageOf(again->bindAndRun()), "") << what; });
      if (testing::Test::HasFatalFailure())
        return;
      for (size_t r = 0; r < types.size(); ++r) {
        std::string name = what + ", result " + std::to_string(r);
        expectNear(once->result(r), (*wanted)[r], dtype == DType::F64 ? 1e-12 : test.tolerance,
                   name);
        expectEqual(once->result(r), again->result(r), name + " on other threads");
      }
      onThreads(1, [&] {
        uint64_t before = allocations();
        llvm::consumeError(once->run());
        EXPECT_EQ(allocations(), before) << what << ": a run allocates";
      });
    }
  }
}

} // namespace shardc::host
