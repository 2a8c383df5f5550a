// SPDX-License-Identifier: Apache-2.0
// Prints how long kernels take at the sizes of T5-large (batch 64, length 128) and DeBERTa-v2-xlarge (batch 40):
// microseconds, and what of the device's arithmetic and memory that uses. Operands stay where they are from run to run,
// so small ones lie in its cache.
#include "tests/cuda/RunCommand.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr DType kStored = DType::BF16;

/// Of the sections of main, those whose name the command line has; all if it has none.
llvm::SmallVector<llvm::StringRef> asked;
bool isAsked(llvm::StringRef section) { return asked.empty() || llvm::is_contained(asked, section); }

/// A block of random numbers, again and again.
Tensor values(DType dtype, Dims dims) {
  constexpr int64_t kBlock = 1 << 16;
  static const Tensor floats = randomTensor(DType::F32, {kBlock}, 1), halves = randomTensor(DType::BF16, {kBlock}, 1);
  Tensor tensor(dtype, dims);
  const Tensor &from = dtype == DType::F32 ? floats : halves;
  for (int64_t at = 0, bytes = tensor.numBytes(); at < bytes; at += from.numBytes())
    std::memcpy(tensor.mutableData<char>() + at, from.bytes(), std::min(from.numBytes(), bytes - at));
  return tensor;
}

Tensor ids(int64_t count, int64_t limit) {
  Tensor tensor(DType::I64, {count});
  for (int64_t i = 0; i < count; ++i)
    tensor.mutableData<int64_t>()[i] = (i * 7919) % limit;
  return tensor;
}

/// Microseconds of one launch: the median of some series.
double timeOf(DeviceCommand &command) {
  constexpr int kSeries = 7, kLaunches = 10;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int s = 0; s < kSeries; ++s) {
    cudaEventRecord(begin, stream);
    for (int l = 0; l < kLaunches; ++l)
      if (llvm::Error error = command.launch(stream))
        llvm::report_fatal_error(std::move(error));
    cudaEventRecord(end, stream);
    cudaStreamSynchronize(stream);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(ms / kLaunches * 1e3f);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  std::sort(times.begin(), times.end());
  return times[kSeries / 2];
}

void row(llvm::StringRef name, const TestCommand &test, double flops) {
  auto command = DeviceCommand::bind(test);
  if (!command) {
    llvm::outs() << name << ": " << llvm::toString(command.takeError()) << "\n";
    return;
  }
  const double us = timeOf(**command);
  llvm::outs() << llvm::format("%-44s %10.1f us %8.1f TFLOP/s %7.2f TB/s\n", name.str().c_str(), us, flops / us * 1e-6,
                               double((*command)->bytes()) / us * 1e-6);
  llvm::outs().flush();
}

void product(llvm::StringRef name, int64_t m, int64_t n, int64_t k, bool ta, bool tb, DType out, bool accumulate) {
  TestCommand test{"matmul", {{"transpose_a", int64_t(ta)}, {"transpose_b", int64_t(tb)}}};
  test.in = {values(kStored, ta ? Dims{k, m} : Dims{m, k}), values(kStored, tb ? Dims{n, k} : Dims{k, n})};
  if (accumulate) {
    test.in.push_back(values(out, {m, n}));
    test.inPlace = {{0, 2}};
  }
  test.out = {Type(out, {m, n})};
  row(name, test, 2.0 * double(m) * double(n) * double(k));
}

void attention(llvm::StringRef name, int64_t batch, int64_t length, int64_t heads, int64_t depth, Dims bias,
               double dropout) {
  const Dims dims = {batch, length, heads, depth};
  TestCommand forward{"attention",
                      {{"scale", 0.125}, {"dropout", dropout}, {"id", int64_t(3)}, {"batch_major", int64_t(1)}}};
  Tensor mask(DType::Bool, {batch, 1, 1, length});
  std::memset(mask.mutableData<char>(), 1, mask.numBytes());
  OperandView bias_ = bias.empty() ? OperandView() : OperandView(values(kStored, bias));
  forward.in = {values(kStored, dims), values(kStored, dims), values(kStored, dims), bias_, mask};
  forward.attrs.set("fill", -3.4028234663852886e38);
  forward.out = {Type(kStored, dims), Type(DType::F32, {batch, heads, length})};
  const double product = 2.0 * double(batch * heads) * double(length * length) * double(depth);
  row((name + " forward").str(), forward, 2 * product);
  TestCommand backward{"attention_grad", forward.attrs};
  backward.attrs.set("bias_grad", int64_t(!bias.empty()));
  backward.in = {values(kStored, dims),
                 forward.in[0],
                 forward.in[1],
                 forward.in[2],
                 values(kStored, dims),
                 Tensor::splat(DType::F32, {batch, heads, length}, 6),
                 bias_,
                 mask};
  backward.out = {Type(kStored, dims), Type(kStored, dims), Type(kStored, dims)};
  if (!bias.empty())
    backward.out.emplace_back(kStored, bias);
  row((name + " backward").str(), backward, 5 * product);
}

void relativeAttention(llvm::StringRef name, int64_t batch, int64_t length, int64_t heads, int64_t depth) {
  const Dims dims = {batch, length, heads, depth}, positions = {2 * length - 1, heads, depth};
  TestCommand forward{"relative_attention", {{"scale", 0.07}, {"fill", -3.4028234663852886e38}}};
  Tensor mask(DType::Bool, {batch, 1, length, length});
  std::memset(mask.mutableData<char>(), 1, mask.numBytes());
  forward.in = {values(kStored, dims), values(kStored, dims), values(kStored, dims), values(kStored, positions),
                values(kStored, positions), mask};
  forward.out = {Type(kStored, dims), Type(DType::F32, {batch, heads, length})};
  const double product = 2.0 * double(batch * heads) * double(length * length) * double(depth);
  row((name + " forward").str(), forward, 4 * product);
  TestCommand backward{"relative_attention_grad", forward.attrs};
  backward.in = {values(kStored, dims), forward.in[0], forward.in[1], forward.in[2], forward.in[3], forward.in[4],
                 values(kStored, dims), Tensor::splat(DType::F32, {batch, heads, length}, 6), mask};
  backward.out = {Type(kStored, dims), Type(kStored, dims), Type(kStored, dims), Type(kStored, positions),
                  Type(kStored, positions)};
  row((name + " backward").str(), backward, 11 * product);
}

void loss(int64_t rows, int64_t classes) {
  TestCommand forward{
      "cross_entropy", {{"ignore_index", int64_t(-100)}}, {values(kStored, {rows, classes}), ids(rows, classes)}};
  const Type scalar(DType::F32, {});
  forward.out = {scalar, scalar, scalar, Type(DType::F32, {rows})};
  row("cross_entropy", forward, 0);
  TestCommand backward{
      "cross_entropy_grad", forward.attrs, {Tensor::splat(DType::F32, {}, 1), forward.in[0], forward.in[1]}};
  backward.in.push_back(Tensor::splat(DType::F32, {rows}, 11));
  backward.out = {Type(kStored, {rows, classes})};
  backward.inPlace = {{0, 1}};
  row("cross_entropy_grad", backward, 0);
}

void embedding(int64_t count, int64_t rows, int64_t width) {
  TestCommand forward{
      "embedding", {}, {values(kStored, {rows, width}), ids(count, rows)}, {Type(kStored, {count, width})}};
  row("embedding", forward, 0);
  TestCommand backward{"embedding_grad",
                       {{"rows", rows}},
                       {values(kStored, {count, width}), ids(count, rows)},
                       {Type(kStored, {rows, width})}};
  row("embedding_grad", backward, 0);
  backward.in[1] = ids(count, 1);
  row("embedding_grad, one id", backward, 0);
}

void update(int64_t count) {
  TestCommand squares{"sum_squares", {}, {values(kStored, {count})}, {Type(DType::F64, {1})}};
  row("sum_squares, bf16", squares, 0);
  TestCommand adam{"adamw", {{"decay_end", count}}};
  const Type type(DType::F32, {count});
  adam.in = {values(DType::F32, {count}), values(kStored, {count}),         values(DType::F32, {count}),
             Tensor(DType::F32, {count}), Tensor::splat(DType::F64, {}, 1), Tensor(DType::F64, {kNumScalars})};
  adam.out = {type, type, type};
  adam.inPlace = {{0, 0}, {1, 2}, {2, 3}};
  double *scalars = adam.in[5].storage->mutableData<double>();
  scalars[kLearningRate] = 1e-4, scalars[kBeta1] = 0.9, scalars[kBeta2] = 0.999, scalars[kEpsilon] = 1e-8;
  scalars[kBiasCorrection1] = 0.1, scalars[kBiasCorrection2] = 0.001;
  row("adamw, bf16 gradients", adam, 0);
}

void norms(int64_t count, int64_t width) {
  const Dims dims{count, width};
  const Type y(kStored, dims), statistic(DType::F32, {count}), parameter(kStored, {width});
  const Tensor x = values(kStored, dims), scale = values(kStored, {width}), one = Tensor::splat(DType::F32, {count}, 1);
  row("rms_norm", {"rms_norm", {{"axis", int64_t(1)}, {"eps", 1e-6}}, {x, scale}, {y, statistic}}, 0);
  row("rms_norm_grad",
      {"rms_norm_grad", {{"axis", int64_t(1)}, {"affine", int64_t(1)}}, {x, x, one, scale}, {y, parameter}}, 0);
  row("layer_norm", {"layer_norm", {{"axis", int64_t(1)}, {"eps", 1e-6}}, {x, scale, scale}, {y, statistic, statistic}},
      0);
  row("layer_norm_grad",
      {"layer_norm_grad",
       {{"axis", int64_t(1)}, {"affine", int64_t(1)}},
       {x, x, one, one, scale},
       {y, parameter, parameter}},
      0);
  row("reduce_sum of columns", {"reduce_sum", {{"axes", Ints{0}}}, {x}, {parameter}}, 0);
}

/// The same and what stands beside them in a plan, as one kernel of a program over rows.
void groups(int64_t count, int64_t width) {
  const Dims dims{count, width};
  constexpr int64_t kParts = 264;
  const Type y(kStored, dims), parts(DType::F32, {kParts, width}), statistic(DType::F32, {count, 1});
  const Tensor x = values(kStored, dims), wide = values(DType::F32, dims), scale = values(kStored, {width}),
               one = Tensor::splat(DType::F32, {count, 1}, 1);
  auto overRows = [&](llvm::StringRef name, std::vector<OperandView> in, llvm::StringRef body, llvm::StringRef outputs,
                      llvm::SmallVector<Type> types) {
    TestCommand test{"fused_rows",
                     {{"body", body.str()}, {"outputs", outputs.str()}, {"dims", Ints(dims)}, {"axis", int64_t(1)}, {"parts", kParts}},
                     std::move(in)};
    test.out.assign(types.begin(), types.end());
    row(("rows, " + name).str(), test, 0);
  };
  const std::string n = std::to_string(width) + ".0",
                    rms = " t1: f32 = t0 * x2; t2: f32 = dy * x3; t3: bf16 = x2 * (t2 - t1 * (rowsum(t2 * t1) / " + n + "));",
                    centred = " t1: f32 = (t0 - x2) * x3; t2: f32 = dy * x4; t3: bf16 = x3 * (t2 - rowsum(t2) / " + n +
                              " - t1 * (rowsum(t2 * t1) / " + n + ")); s: f32 = colsum(dy * t1); c: f32 = colsum(dy);";
  overRows("rms_norm", {x, scale}, "t0: f32 = x0; r: f32 = 1 / sqrt(rowsum(t0 * t0) / " + n + " + 0.000001); y: bf16 = t0 * r * x1;",
           "y,r", {y, statistic});
  overRows("add, rms_norm", {x, x, scale},
           "a: bf16 = x0 + x1; t0: f32 = a; r: f32 = 1 / sqrt(rowsum(t0 * t0) / " + n + " + 0.000001); y: bf16 = t0 * r * x2;", "a,y,r",
           {y, y, statistic});
  overRows("rms_norm_grad", {x, x, one, scale}, "dy: f32 = x0; t0: f32 = x1;" + rms + " s: f32 = colsum(dy * t1);", "t3,s", {y, parts});
  overRows("rms_norm_grad, residual", {x, x, one, scale, x},
           "dy: f32 = x0; t0: f32 = x1;" + rms + " s: f32 = colsum(dy * t1); z: bf16 = t3 + x4;", "z,s", {y, parts});
  overRows("rms_norm_grad of f32, residual, dropout", {wide, x, one, scale, x},
           "d: bf16 = x0; dy: f32 = d; t0: f32 = x1;" + rms +
               " s: f32 = colsum(dy * t1); z: bf16 = t3 + x4; w: bf16 = f32(z) * keep(0.1, 5, 1);",
           "z,w,s", {y, y, parts});
  overRows("layer_norm, residual, dropout", {x, x, scale, scale},
           "a: bf16 = f32(x0) * keep(0.1, 5, 1); t0: bf16 = a + x1; m: f32 = rowsum(t0) / " + n +
               "; t1: f32 = t0 - m; r: f32 = 1 / sqrt(rowsum(t1 * t1) / " + n + " + 0.000001); y: bf16 = t1 * r * x2 + x3;",
           "t0,y,m,r", {y, y, statistic, statistic});
  overRows("layer_norm_grad", {x, x, one, one, scale}, "dy: f32 = x0; t0: f32 = x1;" + centred, "t3,s,c", {y, parts, parts});
  overRows("add, layer_norm_grad, bias gradient", {x, x, one, one, scale, x},
           "d: bf16 = x0 + x5; dy: f32 = d; t0: f32 = x1;" + centred + " b: f32 = colsum(t3);", "t3,s,c,b", {y, parts, parts, parts});
  overRows("sum of columns", {x}, "s: f32 = colsum(x0);", "s", {parts});
  const Tensor sums = values(DType::F32, {kParts, width});
  const Type parameter(kStored, {width});
  row("column_sums, one", {"column_sums", {{"dtypes", std::string("bf16")}}, {sums}, {parameter}}, 0);
  row("column_sums, three",
      {"column_sums", {{"dtypes", std::string("bf16,bf16,bf16")}}, {sums, sums, sums}, {parameter, parameter, parameter}}, 0);
}

void gelus(int64_t count, int64_t width) {
  const Dims dims{count, width};
  const Tensor x = values(kStored, dims), wide = values(DType::F32, dims);
  const std::string gelu = "t0: f32 = x0; t1: f32 = t0 * 0.70710676908493042; t2: f32 = erf(t1); t3: f32 = 1.0 + t2; t4: f32 = t3 * 0.5; "
                           "t5: f32 = t0 * t0; t6: f32 = t5 * (-0.5); t7: f32 = exp(t6); t8: f32 = t7 * 0.39894229173660278; "
                           "t9: f32 = t0 * t8; t10: f32 = t4 + t9; t11: f32 = x1 * t10; t12: bf16 = t11;";
  for (const Tensor &dy : {x, wide}) {
    TestCommand test{"fused_rows",
                     {{"body", gelu + " s: f32 = colsum(t12);"}, {"outputs", std::string("t12,s")}, {"dims", Ints(dims)},
                      {"axis", int64_t(1)}, {"parts", int64_t(264)}},
                     {x, dy}};
    test.out = {Type(kStored, dims), Type(DType::F32, {264, width})};
    row(dy.dtype() == DType::F32 ? "rows, erf-GELU gradient of f32, bias gradient" : "rows, erf-GELU gradient, bias gradient", test, 0);
    row("fused, the same without", {"fused", {{"body", gelu}, {"outputs", std::string("t12")}}, {x, dy}, {Type(kStored, dims)}}, 0);
  }
}

void softmaxes(llvm::StringRef name, const Dims &dims) {
  const Tensor x = values(kStored, dims);
  row(("softmax, " + name).str(), {"softmax", {}, {x}, {Type(kStored, dims)}}, 0);
  row(("softmax_grad, " + name).str(), {"softmax_grad", {}, {x, x}, {Type(kStored, dims)}}, 0);
}

void fused(llvm::StringRef name, std::vector<OperandView> in, const Dims &dims, llvm::StringRef body,
           llvm::StringRef output) {
  row(("fused, " + name).str(),
      {"fused", {{"body", body.str()}, {"outputs", output.str()}}, std::move(in), {Type(kStored, dims)}}, 0);
}

void pointwise() {
  const Dims dims{8192, 4096}, heads{64, 128, 16, 64}, swapped{64, 16, 128, 64};
  const Tensor x = values(kStored, dims), bias = values(kStored, {4096}), packed = values(kStored, heads);
  fused("relu gradient", {x, x}, dims, "t0: bf16 = x1 > bf16(0) ? f32(x0) : 0", "t0");
  fused("bias, erf-GELU", {x, bias}, dims,
        "t0: bf16 = f32(x0) + f32(x1); t1: bf16 = 0.5 * f32(t0) * (1 + erf(f32(t0) * 0.70710678))", "t1");
  fused("dropout, add", {x, x}, dims, "t0: bf16 = f32(x0) * keep(0.1, 5, 1); t1: bf16 = f32(t0) + f32(x1)", "t1");
  const OperandView view(packed, swapped, {128 * 16 * 64, 64, 16 * 64, 1}, 0);
  row("copy, heads to the front", {"copy", {}, {view}, {Type(kStored, swapped)}}, 0);
  row("copy, transpose of [8192, 4096]",
      {"copy", {}, {OperandView(x, {4096, 8192}, {1, 4096}, 0)}, {Type(kStored, {4096, 8192})}}, 0);
}

} // namespace

int main(int argc, char **argv) {
  asked.assign(argv + 1, argv + argc);
  if (!sharedDevice()) {
    llvm::outs() << "no CUDA device: " << cuda::Device::whyNone() << "\n";
    return 77;
  }
  const int64_t rows = 64 * 128;
  llvm::outs() << "bf16; T5-large, 64 x 128\n";
  if (isAsked("products")) {
    product("[8192x1024] [1024x3072], forward", rows, 3072, 1024, false, true, kStored, false);
    product("[8192x1024] [1024x1024], forward", rows, 1024, 1024, false, true, kStored, false);
    product("[8192x1024] [1024x1024] + c, forward", rows, 1024, 1024, false, true, kStored, true);
    product("[8192x4096] [4096x1024], forward", rows, 1024, 4096, false, true, kStored, false);
    product("[8192x3072] [3072x1024], of the input", rows, 1024, 3072, false, false, kStored, false);
    product("[3072x8192] [8192x1024], of the weight", 3072, 1024, rows, true, false, kStored, false);
    product("[3072x8192] [8192x1024] += f32", 3072, 1024, rows, true, false, DType::F32, true);
    product("[8192x1024] [1024x32128], logits", rows, 32128, 1024, false, true, kStored, false);
  }
  if (isAsked("attention")) {
    attention("attention, shared bias", 64, 128, 16, 64, {1, 16, 128, 128}, 0);
    attention("attention, shared bias, dropout", 64, 128, 16, 64, {1, 16, 128, 128}, 0.1);
    attention("attention, no bias", 64, 128, 16, 64, {}, 0);
    attention("attention, length 512", 16, 512, 16, 64, {1, 16, 512, 512}, 0);
    attention("attention, heads of 128", 32, 128, 16, 128, {1, 16, 128, 128}, 0);
    attention("attention, full bias (DeBERTa)", 40, 128, 24, 64, {40, 24, 128, 128}, 0);
    relativeAttention("attention, distances (DeBERTa)", 40, 128, 24, 64);
    relativeAttention("attention, distances, length 512", 8, 512, 24, 64);
  }
  if (isAsked("loss")) {
    loss(rows, 32128);
    embedding(rows, 32128, 1024);
    update(32 << 20);
  }
  if (isAsked("rows")) {
    norms(rows, 1024);
    groups(rows, 1024);
    norms(40 * 128, 1536);
    groups(40 * 128, 1536);
    gelus(40 * 128, 6144);
  }
  if (isAsked("softmax")) {
    softmaxes("[64 x 16 x 128, 128]", {64, 16, 128, 128});
    softmaxes("[512, 32128]", {512, 32128});
  }
  if (isAsked("pointwise"))
    pointwise();
  return 0;
}
