// SPDX-License-Identifier: Apache-2.0
// Model-local functions become plain nodes.
#include "OnnxBuilder.h"
#include "tests/runtime/TestFiles.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

struct FunctionModel : OnnxBuilder {
  FunctionModel() {
    input("x");
    output("y");
  }
  onnx::FunctionProto *function(const char *name, Names inputs, Names outputs) {
    onnx::FunctionProto *f = model.add_functions();
    f->set_domain("local");
    f->set_name(name);
    for (const char *input : inputs)
      f->add_input(input);
    for (const char *output : outputs)
      f->add_output(output);
    f->add_opset_import()->set_version(17);
    return f;
  }
  static onnx::NodeProto *body(onnx::FunctionProto *f, const char *op, Names inputs, Names outputs,
                               const char *domain = "") {
    onnx::NodeProto *node = addNode(f->mutable_node(), op, inputs, outputs);
    node->set_domain(domain);
    return node;
  }
  onnx::NodeProto *call(const char *op, Names inputs, Names outputs, const char *name = "") {
    onnx::NodeProto *n = node(op, inputs, outputs, name);
    n->set_domain("local");
    return n;
  }
  /// Each node as "Op(inputs)->outputs", or the error.
  std::string text() const {
    auto model = read();
    if (!model)
      return messageOf(model.takeError());
    EXPECT_EQ((*model)->proto().functions_size(), 0);
    std::string result;
    for (const onnx::NodeProto &node : (*model)->graph().node()) {
      result += node.op_type() + "(";
      for (int i = 0; i < node.input_size(); ++i)
        result += (i ? "," : "") + node.input(i);
      result += ")->";
      for (int i = 0; i < node.output_size(); ++i)
        result += (i ? "," : "") + node.output(i);
      result += " ";
    }
    return result;
  }
};

TEST(InlineFunctions, RenamesValuesByCall) {
  FunctionModel m;
  auto *f = m.function("F", {"a", "b"}, {"c"});
  m.body(f, "Mul", {"a", "b"}, {"t"});
  m.body(f, "Add", {"t", "a"}, {"c"});
  m.call("F", {"x", "x"}, {"u"}, "one");
  m.call("F", {"u", "x"}, {"y"}, "two");
  EXPECT_EQ(m.text(), "Mul(x,x)->one/t Add(one/t,x)->u Mul(u,x)->two/t Add(two/t,u)->y ");
}

TEST(InlineFunctions, TwoCallsOfOneNameStayApart) {
  FunctionModel m;
  auto *f = m.function("F", {"a"}, {"c"});
  m.body(f, "Neg", {"a"}, {"t"});
  m.body(f, "Abs", {"t"}, {"c"});
  m.call("F", {"x"}, {"u"}, "same");
  m.call("F", {"u"}, {"y"}, "same");
  EXPECT_EQ(m.text(), "Neg(x)->same/t Abs(same/t)->u Neg(u)->same#1/t Abs(same#1/t)->y ");
}

TEST(InlineFunctions, Nested) {
  FunctionModel m;
  auto *f = m.function("F", {"a"}, {"c"});
  m.body(f, "G", {"a"}, {"c"}, "local");
  auto *g = m.function("G", {"a"}, {"c"});
  m.body(g, "Neg", {"a"}, {"t"});
  m.body(g, "Abs", {"t"}, {"c"});
  m.call("F", {"x"}, {"y"}, "f");
  EXPECT_EQ(m.text(), "Neg(x)->f/G/t Abs(f/G/t)->y ");
}

TEST(InlineFunctions, MissingInputsAndOutputsAreAbsent) {
  FunctionModel m;
  auto *f = m.function("F", {"a", "low", "high"}, {"c", "d"});
  m.body(f, "Clip", {"a", "low", "high"}, {"c"});
  m.body(f, "Neg", {"a"}, {"d"});
  m.call("F", {"x", "", "x"}, {"u"}, "f");
  m.call("F", {"x"}, {"", "y"}, "g");
  EXPECT_EQ(m.text(), "Clip(x,,x)->u Neg(x)->f/d Clip(x,,)->g/c Neg(x)->y ");
}

TEST(InlineFunctions, AnOutputThatIsAnInputGetsItsName) {
  FunctionModel m;
  m.function("F", {"a"}, {"a", "a"});
  m.call("F", {"x"}, {"u", "y"}, "f");
  EXPECT_EQ(m.text(), "Identity(x)->u Identity(x)->y ");
}

TEST(InlineFunctions, FillsInAttributes) {
  FunctionModel m;
  auto *f = m.function("F", {"a"}, {"c"});
  auto refer = [&](const char *name, const char *to) {
    onnx::AttributeProto *a = f->mutable_node(0)->add_attribute();
    a->set_name(name);
    a->set_ref_attr_name(to);
  };
  m.body(f, "Softmax", {"a"}, {"c"});
  f->add_attribute("dim");
  f->add_attribute("left_out");
  onnx::AttributeProto *preset = f->add_attribute_proto();
  preset->set_name("preset");
  preset->set_i(5);
  refer("axis", "dim");
  refer("gone", "left_out");
  refer("other", "preset");
  onnx::AttributeProto *dim = m.call("F", {"x"}, {"y"}, "f")->add_attribute();
  dim->set_name("dim");
  dim->set_i(-2);
  auto model = m.read();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  const onnx::NodeProto &node = (*model)->graph().node(0);
  ASSERT_EQ(node.attribute_size(), 2);
  EXPECT_EQ(node.attribute(0).name(), "axis");
  EXPECT_EQ(node.attribute(0).i(), -2);
  EXPECT_EQ(node.attribute(1).name(), "other");
  EXPECT_EQ(node.attribute(1).i(), 5);
}

TEST(InlineFunctions, SubgraphsOfABody) {
  FunctionModel m;
  auto *f = m.function("F", {"a", "flag"}, {"c"});
  m.body(f, "Neg", {"a"}, {"t"});
  onnx::NodeProto *branch = m.body(f, "If", {"flag"}, {"c"});
  onnx::AttributeProto *a = branch->add_attribute();
  a->set_name("then_branch");
  addNode(a->mutable_g()->mutable_node(), "Add", {"a", "t"}, {"r"});
  a->mutable_g()->add_output()->set_name("r");
  m.call("F", {"x", "x"}, {"y"}, "f");
  auto model = m.read();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  const onnx::GraphProto &inner = (*model)->graph().node(1).attribute(0).g();
  EXPECT_EQ(inner.node(0).input(0), "x");
  EXPECT_EQ(inner.node(0).input(1), "f/t");
  EXPECT_EQ(inner.node(0).output(0), "f/r");
  EXPECT_EQ(inner.output(0).name(), "f/r");
}

TEST(InlineFunctions, KeepsTheOriginOfTheCall) {
  FunctionModel m;
  m.body(m.function("F", {"a"}, {"c"}), "Neg", {"a"}, {"c"});
  addMetadata(m.call("F", {"x"}, {"y"}, "f")->mutable_metadata_props(), "origin", "here");
  auto model = m.read();
  ASSERT_TRUE(bool(model));
  EXPECT_EQ((*model)->graph().node(0).metadata_props(0).value(), "here");
}

TEST(InlineFunctions, WeightsOfABodyStayInTheFile) {
  FunctionModel m;
  auto *f = m.function("F", {"a"}, {"c"});
  onnx::AttributeProto *value = m.body(f, "Constant", {}, {"w"})->add_attribute();
  value->set_name("value");
  setFloats(value->mutable_t(), "", {1}, {7});
  m.body(f, "Add", {"a", "w"}, {"c"});
  m.call("F", {"x"}, {"u"}, "f");
  m.call("F", {"u"}, {"y"}, "g");
  auto model = m.read();
  ASSERT_TRUE(bool(model));
  for (int node : {0, 2}) {
    const TensorSource &source = (*model)->source((*model)->graph().node(node).attribute(0).t());
    float number;
    memcpy(&number, source.data, 4);
    EXPECT_EQ(number, 7);
  }
}

TEST(InlineFunctions, Refusals) {
  {
    FunctionModel m;
    m.body(m.function("F", {"a"}, {"c"}), "G", {"a"}, {"c"}, "local");
    m.body(m.function("G", {"a"}, {"c"}), "F", {"a"}, {"c"}, "local");
    m.call("F", {"x"}, {"y"});
    EXPECT_EQ(m.text(), "m.onnx: function calls itself or is nested too deeply: 'local::F -> "
                        "local::G -> local::F'");
  }
  {
    FunctionModel m;
    m.body(m.function("F", {"a"}, {"c"}), "Neg", {"a"}, {"c"});
    m.function("F", {}, {});
    m.call("F", {"x"}, {"y"});
    EXPECT_EQ(m.text(), "m.onnx: function 'local::F' is there twice");
  }
  {
    FunctionModel m;
    m.body(m.function("F", {"a"}, {"c"}), "Neg", {"a"}, {"c"});
    m.call("F", {"x", "x"}, {"y"}, "f");
    EXPECT_EQ(m.text(), "m.onnx: node 'f' (local::F) has too many inputs or outputs for its "
                        "function: got 2 and 1, wanted at most 1 and 1");
  }
  {
    FunctionModel m;
    auto *f = m.function("F", {"a"}, {"c"});
    m.body(f, "Neg", {"a"}, {"c"});
    f->mutable_opset_import(0)->set_version(13);
    m.call("F", {"x"}, {"y"}, "f");
    EXPECT_EQ(m.text(), "m.onnx: function 'local::F' is of another opset than the model: got 13, "
                        "wanted 17");
  }
  {
    FunctionModel m; // 2^40 nodes
    for (int i = 0; i < 40; ++i) {
      auto *f = m.function(("F" + std::to_string(i)).c_str(), {"a"}, {"c"});
      std::string inner = "F" + std::to_string(i + 1);
      m.body(f, inner.c_str(), {"a"}, {"t"}, "local");
      m.body(f, inner.c_str(), {"t"}, {"c"}, "local");
    }
    m.body(m.function("F40", {"a"}, {"c"}), "Neg", {"a"}, {"c"});
    m.call("F0", {"x"}, {"y"});
    EXPECT_EQ(m.text(), "m.onnx: functions expand to more than 200000 nodes");
  }
  {
    FunctionModel m;
    m.body(m.function("F", {"a"}, {"c"}), "Neg", {"a"}, {"c"});
    onnx::AttributeProto *graph = m.call("F", {"x"}, {"y"}, "f")->add_attribute();
    graph->set_name("g");
    graph->mutable_g();
    EXPECT_EQ(m.text(), "m.onnx: node 'f' (local::F) gives a graph to a function, which is not "
                        "supported");
  }
  {
    FunctionModel m; // few nodes, but a megabyte in each
    auto *f = m.function("F", {"a"}, {"c"});
    m.body(f, "Neg", {"a"}, {"c"})->add_attribute()->set_s(std::string(1 << 20, 'x'));
    for (int i = 0; i < 65; ++i)
      m.call("F", {"x"}, {i ? "" : "y"}, ("f" + std::to_string(i)).c_str());
    EXPECT_EQ(m.text(), "m.onnx: functions expand to more than 64 MiB");
  }
}

} // namespace
