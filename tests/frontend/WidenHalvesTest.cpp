// SPDX-License-Identifier: Apache-2.0
// A model that was exported in 16 bits is f32 inside; its file stays as it is.
#include "ir/graph/Fold.h"
#include "tests/frontend/ImportHelpers.h"
#include <limits>

namespace shardc::test {
namespace {

void halves(TestModel &m, const char *name, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<uint16_t> bits) {
  onnx::TensorProto *tensor = m.graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT16);
  tensor->mutable_dims()->Assign(dims.begin(), dims.end());
  tensor->set_raw_data(bits.data(), bits.size() * sizeof(uint16_t));
}

/// mean(float(where(keep, x, lowest) * weight + 2^-24)), all of it f16 but for the end.
TestModel model() {
  TestModel m;
  m.typedInput("x", onnx::TensorProto::FLOAT16, {"2"});
  m.typedInput("keep", onnx::TensorProto::BOOL, {"2"});
  halves(m, "m.a.scale.weight", {2}, {0x3C00, 0xC100}); // 1, -2.5
  halves(m, "lowest", {}, {0xFBFF});
  halves(m, "least", {}, {0x0001});
  m.node("Where", {"keep", "x", "lowest"}, {"masked"});
  m.node("Mul", {"masked", "m.a.scale.weight"}, {"product"}, "/m/a/scale/Mul");
  m.node("Add", {"product", "least"}, {"sum"});
  setInt(m.node("Cast", {"sum"}, {"wide"}), "to", onnx::TensorProto::FLOAT);
  m.node("ReduceMean", {"wide"}, {"loss"});
  m.output("loss");
  return m;
}

TEST(WidenHalves, EverythingIsF32ButTheFile) {
  TestModel m = model();
  auto graph = m.graphOf({});
  ASSERT_TRUE(graph);
  for (const Op &op : graph->ops())
    for (unsigned i = 0; i < op.numResults(); ++i)
      EXPECT_FALSE(isHalf(op.result(i)->type().dtype)) << op.def().mnemonic;
  ASSERT_EQ(graph->parameters.size(), 1u);
  EXPECT_EQ(graph->parameters[0].type, Type(DType::F32, {2}));
  EXPECT_EQ(graph->parameters[0].source.dtype, DType::F16);
  ASSERT_EQ(m.notes.size(), 1u);

  llvm::StringMap<Tensor> given;
  given["x"] = tensorOf({2}, {0.25f, 3});
  given["keep"] = Tensor::splat(DType::Bool, {2}, 1);
  given["a.scale.weight"] = given["m.a.scale.weight"] = tensorOf({2}, {1, -2.5f});
  const double least = 0x1p-24; // rounded away in f16
  EXPECT_EQ(lossOf(*graph, given), (float(0.25 + least) + float(-7.5 + least)) / 2);
  given["keep"] = Tensor::splat(DType::Bool, {2}, 0);
  given["a.scale.weight"] = given["m.a.scale.weight"] = tensorOf({2}, {0.5f, 0.5f});
  EXPECT_EQ(lossOf(*graph, given), -double(std::numeric_limits<float>::max()) / 2); // not -65504
}

TEST(WidenHalves, NotWithoutALoss) {
  TestModel m = model();
  ImportOptions o;
  o.loss = "none";
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->parameters[0].type.dtype, DType::F16);
}

} // namespace
} // namespace shardc::test
