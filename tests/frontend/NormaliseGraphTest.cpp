// SPDX-License-Identifier: Apache-2.0
// The nodes of a file in an order that works, and names that are defined once, before their use, in their scope.
#include "OnnxBuilder.h"
#include "tests/runtime/TestFiles.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

std::string errorOf(const OnnxBuilder &b) { return messageOf(b.read()); }

std::vector<std::string> nodeNames(const onnx::GraphProto &graph) {
  std::vector<std::string> names;
  for (const onnx::NodeProto &node : graph.node())
    names.push_back(node.name());
  return names;
}

using Strings = std::vector<std::string>;

TEST(NormaliseGraph, SortsNodesAndKeepsTheirOrder) {
  OnnxBuilder b;
  b.input("x");
  b.node("Relu", {"b"}, {"c"}, "3");
  b.node("Relu", {"x"}, {"u"}, "free"); // ready before the others, but second in the file
  b.node("Relu", {"a"}, {"b"}, "2");
  b.node("Relu", {"x"}, {"a"}, "1");
  b.output("c");
  auto model = b.read();
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(nodeNames((*model)->graph()), (Strings{"free", "1", "2", "3"}));
}

TEST(NormaliseGraph, SortsByWhatSubgraphsRead) {
  OnnxBuilder b;
  b.input("x");
  b.input("c");
  onnx::NodeProto *branch = b.node("If", {"c"}, {"y"}, "if");
  for (const char *name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto *a = branch->add_attribute();
    a->set_name(name);
    // Two levels down, the inner graph reads `late`.
    onnx::NodeProto *inner = addNode(a->mutable_g()->mutable_node(), "If", {"c"}, {"r"}, "inner");
    for (const char *deep : {"then_branch", "else_branch"}) {
      onnx::AttributeProto *d = inner->add_attribute();
      d->set_name(deep);
      addNode(d->mutable_g()->mutable_node(), "Neg", {"q"}, {"n"}, "neg");
      addNode(d->mutable_g()->mutable_node(), "Relu", {"late"}, {"q"}, "relu");
      d->mutable_g()->add_output()->set_name("n");
    }
    a->mutable_g()->add_output()->set_name("r");
  }
  b.node("Abs", {"x"}, {"late"}, "late");
  b.output("y");
  auto model = b.read();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  EXPECT_EQ(nodeNames((*model)->graph()), (Strings{"late", "if"}));
  EXPECT_EQ(nodeNames((*model)->graph().node(1).attribute(0).g().node(0).attribute(1).g()),
            (Strings{"relu", "neg"}));
}

TEST(NormaliseGraph, PrintsACycle) {
  OnnxBuilder b;
  b.input("x");
  b.node("Relu", {"x"}, {"before"}, "before");
  b.node("Add", {"before", "c"}, {"a"}, "a");
  b.node("Relu", {"a"}, {"b"}, "b");
  b.node("Relu", {"b"}, {"c"}, "c");
  b.node("Relu", {"c"}, {"behind"}, "behind");
  b.output("behind");
  EXPECT_EQ(errorOf(b), "m.onnx: the nodes form a cycle: got node 'a' (Add) -> node 'b' (Relu) -> "
                        "node 'c' (Relu) -> node 'a' (Add), wanted none");
}

TEST(NormaliseGraph, NamesAreDefinedOnceAndBeforeUse) {
  OnnxBuilder b = smallModel();
  b.node("Relu", {"x"}, {"y"}, "again");
  EXPECT_EQ(errorOf(b),
            "m.onnx: node 'again' (Relu) defines a value that is defined already: got 'y', "
            "wanted a new name");

  b = smallModel();
  b.node("Relu", {"x"}, {"w"});
  EXPECT_EQ(errorOf(b), "m.onnx: node 'w' (Relu) defines a value that is defined already: got 'w', "
                        "wanted a new name");

  b = smallModel();
  b.weight("w", {1}, {1});
  EXPECT_EQ(errorOf(b),
            "m.onnx: two initializers have one name: got 'w' twice, wanted unique names");

  b = smallModel();
  b.input("x");
  EXPECT_EQ(errorOf(b), "m.onnx: graph input 'x' is there twice");

  b = smallModel();
  b.node("Relu", {"nowhere"}, {"z"}, "r");
  b.node("Relu", {"neither"}, {"u"}, "s");
  EXPECT_EQ(errorOf(b),
            "m.onnx: node 'r' (Relu) reads a value that nothing defines: got 'nowhere', wanted "
            "an input, initializer or result (and 1 more such names)");

  b = smallModel();
  b.output("nowhere");
  EXPECT_EQ(errorOf(b), "m.onnx: the list of graph outputs reads a value that nothing defines: got "
                        "'nowhere', wanted an input, initializer or result");

  b = smallModel();
  b.graph()->clear_output();
  EXPECT_EQ(errorOf(b), "m.onnx: the graph has no outputs");
}

TEST(NormaliseGraph, EmptyNamesAreAbsent) {
  OnnxBuilder b = smallModel();
  b.node("Clip", {"x", "", "w"}, {"z", ""}, "clip");
  b.node("Clip", {"x", "", ""}, {"u", ""}, "clip2");
  auto model = b.read();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  EXPECT_EQ((*model)->graph().node(1).input(1), "");
}

TEST(NormaliseGraph, AnInitializerIsNoInput) {
  OnnxBuilder b = smallModel();
  b.input("w"); // as IR 3 wants it
  auto model = b.read();
  ASSERT_TRUE(bool(model));
  ASSERT_EQ((*model)->graph().input_size(), 1);
  EXPECT_EQ((*model)->graph().input(0).name(), "x");
}

} // namespace
