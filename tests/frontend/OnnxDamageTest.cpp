// SPDX-License-Identifier: Apache-2.0
// Damaged files: whatever the bytes, reading gives a model or an error, and what it gives can be
// used.
#include "OnnxBuilder.h"
#include "frontend/ParameterNames.h"
#include "frontend/TensorValue.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace shardc;
using namespace shardc::test;

namespace {

/// A bit of everything that the reader looks at.
std::string everything() {
  OnnxBuilder b(18);
  b.input("x");
  b.output("y");
  addMetadata(b.graph()->mutable_metadata_props(),
              "pkg.torch.export.ExportedProgram.graph_signature",
              "p_w: PARAMETER target='m.l.weight'\np_b: PARAMETER target='m.l.bias'\n");
  b.weight("m.l.weight", {2, 2}, 1);
  b.weight("folded", {2, 2}, {1, 1 + 2 / 64.f, 1 + 1 / 64.f, 1 + 3 / 64.f});
  addExternal(b.weight("external", {2}, 2),
              {{"location", "none.bin"}, {"offset", "8"}, {"length", "8"}});
  onnx::TensorProto *typed = b.graph()->add_initializer();
  typed->set_name("shape");
  typed->set_data_type(onnx::TensorProto::INT64);
  typed->add_dims(2);
  typed->add_int64_data(-1);
  typed->add_int64_data(300);
  auto fx = [](onnx::NodeProto *node) {
    addMetadata(node->mutable_metadata_props(), "pkg.torch.onnx.fx_node",
                "%l : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = "
                "(%x, %p_w, %p_b))");
    addMetadata(node->mutable_metadata_props(), "pkg.torch.onnx.name_scopes",
                "['', 'm', 'm.l', 'l']");
  };
  onnx::NodeProto *product = b.node("MatMul", {"x", "folded"}, {"h"}, "/m/l/MatMul");
  fx(product);
  fx(b.node("Gemm", {"h", "m.l.weight"}, {"g"}, "/m/l/Gemm"));
  b.node("Identity", {"m.l.weight"}, {"m.k.weight"});
  onnx::NodeProto *call = b.node("F", {"g", "m.k.weight"}, {"f"}, "call");
  call->set_domain("local");
  onnx::FunctionProto *function = b.model.add_functions();
  function->set_domain("local");
  function->set_name("F");
  function->add_input("a");
  function->add_input("b");
  function->add_output("c");
  function->add_opset_import()->set_version(18);
  addNode(function->mutable_node(), "Add", {"a", "b"}, {"t"});
  onnx::AttributeProto *branch =
      addNode(function->mutable_node(), "If", {"t"}, {"c"})->add_attribute();
  branch->set_name("then_branch");
  onnx::AttributeProto *value =
      addNode(branch->mutable_g()->mutable_node(), "Constant", {}, {"k"})->add_attribute();
  value->set_name("value");
  setFloats(value->mutable_t(), "k", {1}, {3});
  branch->mutable_g()->add_output()->set_name("k");
  b.node("Reshape", {"f", "shape"}, {"r"});
  b.node("Mul", {"r", "external"}, {"y"});
  return b.bytes();
}

/// Reads, then uses everything that was read. Returns whether it was a model.
bool use(llvm::StringRef bytes) {
  // A copy of exactly this size: a sanitizer sees every byte that is read behind its end.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(bytes, "m.onnx");
  auto model = OnnxModel::read(std::move(buffer));
  if (!model) {
    EXPECT_FALSE(llvm::toString(model.takeError()).empty());
    return false;
  }
  int64_t sum = 0;
  for (const onnx::TensorProto &tensor : (*model)->graph().initializer()) {
    const TensorSource &source = (*model)->source(tensor);
    EXPECT_TRUE(!source.data ||
                source.length == uint64_t(source.numElements() * byteSize(source.dtype)));
    for (uint64_t i = 0; source.data && i < source.length; ++i)
      sum += source.data[i];
    if (auto value = tensorValue(**model, tensor, "t"))
      sum += value->numBytes();
    else
      llvm::consumeError(value.takeError());
  }
  for (const onnx::NodeProto &node : (*model)->graph().node())
    if (node.op_type() == "Constant") {
      auto value = constantValue(**model, node);
      if (!value)
        llvm::consumeError(value.takeError());
    }
  auto table = findParameters(**model);
  if (!table)
    llvm::consumeError(table.takeError());
  else
    for (const ParameterUse &use : table->uses) {
      EXPECT_LT(use.node, (*model)->graph().node_size());
      EXPECT_LT(use.input, (*model)->graph().node(use.node).input_size());
      EXPECT_LT(size_t(use.parameter), table->parameters.size());
    }
  return sum != INT64_MIN;
}

TEST(OnnxDamage, EveryTruncation) {
  std::string whole = everything();
  ASSERT_TRUE(use(whole));
  int models = 0;
  for (size_t size = 0; size < whole.size(); ++size)
    models += use(llvm::StringRef(whole).take_front(size));
  // Fields in the order of their numbers: only the functions and the opset stand behind the graph.
  EXPECT_LE(models, 3);
}

TEST(OnnxDamage, EveryByteFlipped) {
  std::string whole = everything();
  int models = 0, cases = 0;
  for (size_t at = 0; at < whole.size(); ++at)
    for (int mask : {0x01, 0x02, 0x08, 0x40, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] ^= mask;
      models += use(damaged);
      ++cases;
    }
  EXPECT_LT(models, cases);
}

TEST(OnnxDamage, BytesInsertedAndLost) {
  std::string whole = everything();
  int models = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    models += use(whole.substr(0, at) + whole.substr(at + 1));
    models += use(whole.substr(0, at) + std::string(1, char(at * 37)) + whole.substr(at));
  }
  EXPECT_LT(models, int(2 * whole.size()));
}

TEST(OnnxDamage, ManyWoundsAtOnce) {
  std::string whole = everything();
  std::mt19937 random(1);
  int errors = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    for (int n = random() % 8; n >= 0; --n)
      damaged[random() % damaged.size()] = char(random());
    errors += !use(damaged);
  }
  EXPECT_GT(errors, 1500);
}

} // namespace
