// SPDX-License-Identifier: Apache-2.0
// The row of the last end token: hidden[ids == 1].view(batch, -1, size)[:, -1], as both exporters write it.
#include "tests/frontend/ImportHelpers.h"

namespace shardc::test {
namespace {

/// Of h [batch, 4, 3] the row that `which` chooses among those that ids == 1 selects.
TestModel picked(int64_t which) {
  TestModel m;
  m.floats("h", {"batch", "4", "3"});
  m.ids("ids", {"batch", "4"});
  m.integers("one", {}, {1});
  m.integers("which", {}, {which});
  m.integers("zero", {1}, {0});
  m.integers("any", {1}, {-1});
  m.integers("size", {1}, {3});
  m.node("Equal", {"ids", "one"}, {"ends"});
  m.node("NonZero", {"ends"}, {"where"}, "/m/NonZero");
  m.node("Transpose", {"where"}, {"places"});
  m.node("GatherND", {"h", "places"}, {"rows"});
  m.node("Shape", {"h"}, {"shape"});
  m.node("Gather", {"shape", "zero"}, {"batch"});
  setInt(m.node("Concat", {"batch", "any", "size"}, {"wanted"}), "axis", 0);
  m.node("Reshape", {"rows", "wanted"}, {"view"});
  setInt(m.node("Gather", {"view", "which"}, {"y"}, "/m/Gather"), "axis", 1);
  m.output("y");
  return m;
}

ImportOptions options() {
  ImportOptions o;
  o.loss = "none";
  o.dims = {{"batch", 3}};
  return o;
}

TEST(LastSelected, IsGatheredByItsPlace) {
  TestModel m = picked(-1);
  auto graph = m.graphOf(options());
  ASSERT_TRUE(graph);
  llvm::StringMap<Tensor> given;
  std::vector<float> h(36);
  for (size_t i = 0; i < h.size(); ++i)
    h[i] = float(i);
  given.insert({"h", Tensor::of<float>(DType::F32, {3, 4, 3}, h)});
  given.insert({"ids", Tensor::of<int64_t>(DType::I64, {3, 4}, {1, 1, 7, 0, 1, 5, 6, 1, 9, 1, 1, 0})});
  auto values = evaluateGraph(*graph, given);
  ASSERT_TRUE(bool(values));
  const Tensor &y = values->find(graph->output("y"))->second;
  ASSERT_EQ(graph->output("y")->type(), Type(DType::F32, {3, 3}));
  const int64_t last[] = {1, 3, 2}; // of the end tokens of each row
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t d = 0; d < 3; ++d)
      EXPECT_EQ(y.asDouble(b * 3 + d), h[(b * 4 + last[b]) * 3 + d]);
}

TEST(LastSelected, AnotherRowIsNot) {
  TestModel m = picked(-2);
  EXPECT_TRUE(llvm::StringRef(m.errorOf(options())).contains("NonZero (opset 17) at '/m/NonZero'"));
}

} // namespace
} // namespace shardc::test
