// SPDX-License-Identifier: Apache-2.0
// Generated kernels compile: those of every pointwise case, dense and strided, and those of whole plans.
// Needs no device.
#include "frontend/Importer.h"
#include "ir/ops/Reference.h"
#include "passes/Pipeline.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/Nvrtc.h"
#include "tests/ops/PrepareKernel.h"
#include "gtest/gtest.h"
#include <set>

using namespace shardc;
using namespace shardc::test;

namespace {

/// Compiles for an H200 what it is asked for, once for each source, and runs nothing.
class CompilingDevice final : public cuda::Device {
public:
  CompilingDevice() { multiprocessors_ = 132; }
  llvm::Expected<cudaKernel_t> compile(llvm::StringRef source, llvm::StringRef name) override {
    EXPECT_TRUE(source.contains((") " + name + "(const __grid_constant__ Arguments a)").str()));
    if (sources.insert(source.str()).second) {
      auto code = cuda::compileCubin(source, "sm_90a", "");
      if (!code)
        return code.takeError();
      EXPECT_TRUE(llvm::StringRef(*code).starts_with("\177ELF"));
    }
    return cudaKernel_t(nullptr);
  }
  std::set<std::string> sources;
};

bool isGenerated(llvm::StringRef kernel) { return kernel == "fused" || kernel == "fused_rows"; }

void bindFused(const host::Binding &binding, CompilingDevice &device) {
  auto kernel = cuda::findKernel(binding.command->kernel())(binding, device);
  EXPECT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
}

CompilingDevice *current = nullptr; // of the running test: RunOp is a plain function

/// Compiles pointwise ops on the way; the values are the reference's.
template <bool kStridedOperands> llvm::Expected<Tensors> compileOp(const Op &op, TensorArgs operands) {
  if (isGenerated(kernelOf(op.def())))
    bindFused(prepareKernel(op, operands, kStridedOperands)->binding, *current);
  if (op.is(kDropout)) // which no reference draws
    return Tensors{*operands[0]};
  return evaluateOp(op, operands);
}

template <bool kStridedOperands> void compileCases(DType dtype) {
  CompilingDevice device;
  current = &device;
  for (const OpCase &c : allCases()) {
    if (!isGenerated(kernelOf(*c.def)))
      continue;
    SCOPED_TRACE(c.def->mnemonic + std::string(" ") + c.what);
    llvm::Expected<CaseGraph> g = buildCase(c, dtype);
    ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
    auto values = interpret(*g->graph, g->feeds, compileOp<kStridedOperands>);
    EXPECT_TRUE(bool(values)) << llvm::toString(values.takeError());
  }
  EXPECT_GT(device.sources.size(), 30u);
}

TEST(CompileFused, everyCase) { compileCases<false>(DType::F32); }
TEST(CompileFused, everyCaseStrided) { compileCases<true>(DType::F32); }
TEST(CompileFused, everyCaseInDouble) { compileCases<true>(DType::F64); }

/// Compiles `body` of arrays of 8 x 64.
void compileBody(llvm::StringRef body, llvm::StringRef outputs, llvm::ArrayRef<DType> types, llvm::ArrayRef<DType> results,
                 CompilingDevice &device) {
  alignas(16) static char memory[1 << 16];
  plan::Command command;
  command.set_kernel("fused");
  for (auto [name, text] : {std::pair{"body", body}, {"outputs", outputs}}) {
    plan::Attr &attr = *command.add_attrs();
    attr.set_name(name);
    attr.set_s(text.str());
  }
  host::Binding b;
  b.command = &command;
  b.place = "test";
  int64_t at = 0;
  auto arrays = [&](llvm::SmallVectorImpl<host::Array> &to, llvm::ArrayRef<DType> list) {
    for (DType dtype : list) {
      host::Array a;
      a.data = memory + at;
      a.dtype = dtype;
      a.dims = {8, 64};
      a.strides = {64, 1};
      at += 8 * 64 * 8;
      to.push_back(a);
    }
  };
  arrays(b.in, types);
  arrays(b.out, results);
  bindFused(b, device);
}

// The types that no case has, and all widths of units.
TEST(CompileFused, sixteenBitsAndMasks) {
  struct {
    const char *body, *outputs;
    std::vector<DType> types, results;
  } const kBodies[] = {
      {"t0: bf16 = f32(x0) + f32(x1) * 0.5; t1: bool = t0 > x0; t2: f16 = f32(t0)",
       "t0,t1,t2",
       {DType::BF16, DType::BF16},
       {DType::BF16, DType::Bool, DType::F16}},
      {"t0: f16 = f32(x0) * keep(0.25, 3, 1); t1: f32 = x1 ? f32(t0) : f32(i32(f32(t0)))",
       "t0,t1",
       {DType::F16, DType::Bool},
       {DType::F16, DType::F32}},
      {"t0: f64 = f64(x0) ; t1: u8 = u8(t0); t2: i64 = i64(x1) % 3; t3: i32 = i32(pow(t2, 2)) / i32(t1)",
       "t3,t1",
       {DType::F32, DType::I64},
       {DType::I32, DType::U8}},
      {"t0: bf16 = x1 > bf16(0) ? f32(x0) : 0", "t0", {DType::BF16, DType::BF16}, {DType::BF16}},
      {"t0: bf16 = f32(x0) + f32(x1); t1: bf16 = 0.5 * f32(t0) * (1 + erf(f32(t0) * 0.70710678))",
       "t1",
       {DType::BF16, DType::BF16},
       {DType::BF16}},
      {"t0: bf16 = f32(x0) * keep(0.1, 5, 1); t1: bf16 = f32(t0) + f32(x1)",
       "t1",
       {DType::BF16, DType::BF16},
       {DType::BF16}},
  };
  CompilingDevice device;
  for (auto &[body, outputs, types, results] : kBodies) {
    SCOPED_TRACE(body);
    compileBody(body, outputs, types, results, device);
  }
  EXPECT_EQ(device.sources.size(), std::size(kBodies));
}

// What is only put away is rounded there, and nowhere else.
TEST(CompileFused, roundsOnce) {
  auto roundings = [](llvm::StringRef body, llvm::StringRef outputs, llvm::ArrayRef<DType> results) {
    CompilingDevice device;
    compileBody(body, outputs, {DType::BF16, DType::BF16}, results, device);
    return llvm::StringRef(*device.sources.begin()).count("= roundBF16(");
  };
  EXPECT_EQ(roundings("t0: bf16 = f32(x0) + f32(x1)", "t0", {DType::BF16}), 0u);
  EXPECT_EQ(roundings("t0: bf16 = f32(x0) + f32(x1); t1: f32 = f32(t0) * 2", "t0,t1", {DType::BF16, DType::F32}), 1u);
}

/// An operand of a plan, at an address that nobody reads.
host::Array arrayOf(const plan::Ref &ref) {
  host::Array a;
  if (ref.absent())
    return a;
  a.dtype = DType(ref.dtype());
  a.dims.assign(ref.dims().begin(), ref.dims().end());
  a.strides = rowMajorStrides(a.dims);
  if (!ref.strides().empty())
    a.strides.assign(ref.strides().begin(), ref.strides().end());
  a.data = reinterpret_cast<void *>(uintptr_t(ref.buffer() + 1) << 40 | ref.offset());
  return a;
}

void compilePlan(const plan::Plan &plan, CompilingDevice &device) {
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &command : program.commands()) {
      if (!findAttr(command.attrs(), "body"))
        continue;
      host::Binding b;
      b.command = &command;
      b.place = plan.strings(command.place());
      for (const plan::Ref &ref : command.inputs())
        b.in.push_back(arrayOf(ref));
      for (const plan::Ref &ref : command.outputs())
        b.out.push_back(arrayOf(ref));
      auto kernel = cuda::findKernel(command.kernel())(b, device);
      EXPECT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
    }
}

struct ModelCase {
  const char *path;
  std::vector<std::pair<std::string, int64_t>> dims;
};
void PrintTo(const ModelCase &c, std::ostream *os) { *os << c.path; }

class CompileFusedPlans : public testing::TestWithParam<std::tuple<ModelCase, Precision>> {};

TEST_P(CompileFusedPlans, fewKernelsForAPlan) {
  const auto &[c, precision] = GetParam();
  const std::string path = std::string(SHARDC_SOURCE_DIR "/tests/models/") + c.path;
  auto model = OnnxModel::open(path, {});
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  ImportOptions imports;
  imports.dims = c.dims;
  auto graph = importOnnx(**model, imports, nullptr);
  ASSERT_TRUE(bool(graph)) << llvm::toString(graph.takeError());
  CompileOptions options;
  options.precision = precision;
  options.target = "cuda";
  options.machine = "h200";
  auto compiled = compile(std::move(*graph), plan::Model(), options);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  CompilingDevice device;
  compilePlan(*compiled->plan, device);
  size_t commands = 0;
  for (const plan::Program &program : compiled->plan->programs())
    for (const plan::Command &command : program.commands())
      commands += findAttr(command.attrs(), "body") != nullptr;
  EXPECT_GT(commands, 0u);
  EXPECT_LE(device.sources.size(), 64u);
  RecordProperty("commands", int(commands));
  RecordProperty("kernels", int(device.sources.size()));
}

INSTANTIATE_TEST_SUITE_P(
    Models, CompileFusedPlans,
    testing::Combine(
        testing::Values(ModelCase{"tiny-mlp/ts17-loss.onnx", {{"batch", 4}}},
                        ModelCase{"tiny-t5/ts17-loss-dropout.onnx", {{"batch", 2}, {"src", 12}, {"tgt", 8}}},
                        ModelCase{"tiny-deberta/ts17-logits.onnx", {{"batch", 2}, {"src", 12}}},
                        ModelCase{"tiny-bert-init/ts17-logits.onnx", {{"batch", 2}, {"src", 12}}}),
        testing::Values(Precision::Fp32, Precision::Bf16, Precision::Fp16)));

} // namespace
