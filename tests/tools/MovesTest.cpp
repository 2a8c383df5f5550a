// SPDX-License-Identifier: Apache-2.0
// A plan that fits only because a buffer is moved, trained by the command line: with --check-races too, with
// the same losses.
#include "ir/plan/Peak.h"
#include "passes/Defragment.h"
#include "passes/Machine.h"
#include "passes/emit/Arena.h"
#include "runtime/Safetensors.h"
#include "tests/plan/MovePlan.h"
#include "tests/runtime/TestFiles.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Program.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

constexpr uint64_t kUnit = 4096;
constexpr int64_t kRows = 2, kColumns = 3, kSteps = 3;

/// Training wants a count to divide the loss by: it is given the sum of the last buffer, a number that is
/// always the same.
plan::Plan fittedPlan() {
  plan::Plan plan = movePlan(kUnit);
  const auto part = find_if(plan.buffers(), [](const plan::Buffer &b) { return b.name() == "part"; });
  plan::Output &count = *plan.add_outputs();
  count.set_name("loss_count");
  count.set_program("train");
  *count.mutable_ref() = smallRef(uint32_t(part - plan.buffers().begin()), {});
  emit::packSpace(plan);
  defragment(plan, plan.spaces(0).lower_bound(), cantFail(loadMachine("cpu")));
  countVersions(plan);
  return plan;
}

std::string contents(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

class Moves : public testing::Test {
protected:
  void SetUp() override {
    std::string self = sys::fs::getMainExecutable(nullptr, nullptr);
    train_ = (sys::path::parent_path(self) + "/shardc-train").str();
    if (!sys::fs::can_execute(train_))
      GTEST_SKIP() << train_ << " is not built";
    std::vector<float> x(kRows * kColumns * kSteps);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i) / 8;
    ASSERT_FALSE(bool(writeSafetensors(folder_.path("data.safetensors"),
                                       ArrayToWrite("x", DType::F32, {kRows * kSteps, kColumns}, x.data()))));
  }

  /// The exit code; what it says is in `said_`.
  int train(const plan::Plan &plan, std::vector<StringRef> more = {}) {
    std::string path = folder_.path("m.plan"), data = folder_.path("data.safetensors"),
                out = folder_.path("out"), errors = folder_.path("stderr");
    EXPECT_FALSE(bool(writePlan(plan, path)));
    std::vector<StringRef> arguments{train_, path,           "--data",         data,         "--max-steps",
                                     "3",    "--no-shuffle", "--init-weights", "normal:0.5", "--output-dir",
                                     out,    "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    int code = sys::ExecuteAndWait(train_, arguments, std::nullopt, {"", folder_.path("stdout"), errors});
    said_ = contents(errors);
    return code;
  }

  std::vector<double> losses() const {
    std::vector<double> losses;
    SmallVector<StringRef> lines;
    std::string log = contents(folder_.path("out/log.jsonl"));
    StringRef(log).split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (StringRef line : lines)
      losses.push_back(cantFail(json::parse(line)).getAsObject()->getNumber("loss").value_or(NAN));
    return losses;
  }

  test::TemporaryFolder folder_;
  std::string train_, said_;
};

TEST_F(Moves, TrainWithoutRaces) {
  plan::Plan plan = fittedPlan();
  ASSERT_EQ(plan.spaces(0).bytes(), plan.spaces(0).lower_bound());
  ASSERT_EQ(count_if(plan.programs(0).commands(), [](const plan::Command &c) { return c.kernel() == "copy"; }), 1);
  ASSERT_EQ(train(plan), 0) << said_;
  std::vector<double> plain = losses();
  ASSERT_EQ(plain.size(), size_t(kSteps));
  // What the moved buffers add up to, and a few small squares; u2, the last one, is the seventh event.
  const double count = 7.0 / 64 * kUnit / 4;
  EXPECT_GE(plain[0] * count, movePlanSum(kUnit));
  EXPECT_LT(plain[0] * count, movePlanSum(kUnit) + 10);
  ASSERT_EQ(train(plan, {"--check-races"}), 0) << said_;
  EXPECT_EQ(losses(), plain);
}

TEST_F(Moves, AMoveToAPlaceThatIsTakenIsRefused) {
  plan::Plan plan = fittedPlan();
  for (const plan::Command &c : plan.programs(0).commands())
    if (c.kernel() == "copy")
      plan.mutable_buffers(int(c.outputs(0).buffer()))->set_offset(plan.buffers(int(c.inputs(0).buffer())).offset());
  EXPECT_EQ(train(plan, {"--check-races"}), 1);
  EXPECT_NE(said_.find("not a sound plan"), std::string::npos) << said_;
}

} // namespace
} // namespace shardc
