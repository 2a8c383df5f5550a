// SPDX-License-Identifier: Apache-2.0
// Every command of whole plans on the device, given the host's operands: a kernel that rounds where the host's does not, or the other way
// round, differs in far more than the order of its sums explains.
#include "frontend/Importer.h"
#include "passes/Pipeline.h"
#include "tests/cuda/OnDevice.h"
#include "tests/cuda/PlanTwin.h"

using namespace shardc;
using namespace shardc::test;

namespace {

struct PlanCase {
  const char *name, *path;
  Precision precision;
  std::vector<std::pair<std::string, int64_t>> dims;
  std::optional<double> dropout = std::nullopt;
};
void PrintTo(const PlanCase &c, std::ostream *os) { *os << c.name; }

/// What the order of f32 sums changes, relative to the rms of a result. Tensor cores take probabilities of attention, and their gradients,
/// which add up to nothing in a row, in 16 bits; and f32 operands as TF32, cut off.
double allowed(llvm::StringRef key, Precision precision) {
  if (key.starts_with("attention") && precision == Precision::Bf16)
    return key.starts_with("attention_grad") ? 3e-2 : 4e-3;
  if (precision == Precision::Tf32 && (key.starts_with("matmul") || key.starts_with("attention")))
    return 2e-3;
  return key.ends_with("bf16") ? 3e-4 : 2e-5;
}

class PlanCommands : public testing::TestWithParam<PlanCase> {};

TEST_P(PlanCommands, roundAsOnTheHost) {
  SHARDC_NEEDS_DEVICE();
  const PlanCase &c = GetParam();
  auto model = OnnxModel::open(std::string(SHARDC_SOURCE_DIR "/") + c.path, {});
  if (!model && llvm::StringRef(c.path).starts_with("..")) {
    llvm::consumeError(model.takeError());
    GTEST_SKIP() << "no " << c.path;
  }
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  ImportOptions imports;
  imports.dims = c.dims;
  auto graph = importOnnx(**model, imports, nullptr);
  ASSERT_TRUE(bool(graph)) << llvm::toString(graph.takeError());
  CompileOptions options;
  options.precision = c.precision;
  options.target = "cuda";
  options.dropout = c.dropout;
  auto compiled = compile(std::move(*graph), {}, options);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  auto twin = PlanTwin::create(*compiled->plan, /*seed=*/3);
  ASSERT_TRUE(bool(twin)) << llvm::toString(twin.takeError());
  std::map<std::string, Difference> differences;
  for (const char *program : {"train", "update", "eval"})
    if (llvm::Error e = (*twin)->run(program, differences))
      FAIL() << program << ": " << llvm::toString(std::move(e));
  EXPECT_GT(differences.size(), 5u);
  for (auto &[key, d] : differences) {
    char line[200];
    std::snprintf(line, sizeof line, "%-28s %5lld commands, %6.3f %% of elements differ, rms %.1e", key.c_str(), (long long)d.commands,
                  100.0 * double(d.unequal) / double(std::max<int64_t>(d.elements, 1)), d.rms);
    std::printf("    %s\n", line);
    EXPECT_LE(d.rms, allowed(key, c.precision)) << line << ", " << d.place;
  }
}

const PlanCase kCases[] = {
    {"Mlp", "tests/models/tiny-mlp/ts17-loss.onnx", Precision::Bf16, {{"batch", 64}}},
    {"T5", "tests/models/tiny-t5/ts17-loss.onnx", Precision::Bf16, {{"batch", 8}, {"src", 12}, {"tgt", 8}}},
    {"T5Float", "tests/models/tiny-t5/ts17-loss.onnx", Precision::Fp32, {{"batch", 8}, {"src", 12}, {"tgt", 8}}},
    {"T5Tf32", "tests/models/tiny-t5/ts17-loss.onnx", Precision::Tf32, {{"batch", 8}, {"src", 12}, {"tgt", 8}}},
    {"T5Dropout", "tests/models/tiny-t5/ts17-loss-dropout.onnx", Precision::Bf16, {{"batch", 8}, {"src", 12}, {"tgt", 8}}},
    {"Deberta", "tests/models/tiny-deberta/ts17-logits.onnx", Precision::Bf16, {{"batch", 8}, {"src", 12}}},
    {"Bert", "tests/models/tiny-bert-init/ts17-logits.onnx", Precision::Bf16, {{"batch", 8}, {"src", 12}}},
    {"LongT5Small", "../shared/models/full/t5-small-ts17.onnx", Precision::Bf16, {{"batch", 2}, {"src", 64}, {"tgt", 64}}, 0.0},
};
INSTANTIATE_TEST_SUITE_P(Models, PlanCommands, testing::ValuesIn(kCases), [](const auto &info) { return std::string(info.param.name); });

} // namespace
