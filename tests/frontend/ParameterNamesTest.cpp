// SPDX-License-Identifier: Apache-2.0
// Names, shapes, orientation and ties of parameters, by each of the traces that exporters leave.
#include "frontend/ParameterNames.h"
#include "OnnxBuilder.h"
#include "ir/base/Tensor.h"
#include "tests/runtime/TestFiles.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

/// Keeps the model that the table's sources point into.
struct Found {
  std::unique_ptr<OnnxModel> model;
  ParameterTable table;

  /// "l.weight 3x2" in the order of the table; "^T" where the bytes are transposed, "=other" for
  /// ties.
  std::vector<std::string> parameters() const {
    std::vector<std::string> result;
    for (const ModelParameter &p : table.parameters) {
      std::string text = p.name + (p.transposed ? "^T " : " ") + formatDims(p.dims);
      for (const std::string &other : p.otherNames)
        text += " =" + other;
      if (p.source.state == TensorSource::State::Zeros)
        text += " zeros";
      result.push_back(text);
    }
    return result;
  }
  /// "node.input:name", "^T" where the node wants the transpose.
  std::string uses() const {
    std::string result;
    for (const ParameterUse &use : table.uses)
      result += (result.empty() ? "" : " ") + std::to_string(use.node) + "." +
                std::to_string(use.input) + ":" + table.parameters[use.parameter].name +
                (use.transposed ? "^T" : "");
    return result;
  }
};

Found find(const OnnxBuilder &b, const ParameterOptions &options = {}) {
  Found found;
  found.model = llvm::cantFail(b.read());
  found.table = llvm::cantFail(findParameters(*found.model, options));
  return found;
}

using Strings = std::vector<std::string>;

struct Model : OnnxBuilder {
  Model() {
    input("x");
    output("x");
  }
  int count = 0;
  /// A node that reads x and the given values, with a path as TorchScript's exporter writes it.
  onnx::NodeProto *use(const char *op, const char *path, Names more) {
    onnx::NodeProto *n = node(op, {"x"}, {}, path);
    for (const char *input : more)
      n->add_input(input);
    n->add_output("out" + std::to_string(count++));
    return n;
  }
};

//--- TorchScript exporter -------------------------------------------------------------------------

TEST(ParameterNames, PlainNamesWithoutTheWrapper) {
  Model m;
  m.weight("m.a.l.weight", {3, 2}, 1);
  m.weight("m.a.l.bias", {3}, 2);
  m.weight("m.unused.weight", {3}, 3);
  m.weight("eps", {}, 4);
  m.use("Gemm", "/m/a/l/Gemm", {"m.a.l.weight", "m.a.l.bias"});
  m.use("Pow", "/m/a/Pow", {"eps"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(), (Strings{"a.l.weight 3x2", "a.l.bias 3"}));
  EXPECT_EQ(f.uses(), "0.1:a.l.weight 0.2:a.l.bias");
}

TEST(ParameterNames, OnlyAPrefixOfAllIsAWrapper) {
  Model m;
  m.weight("a.l.weight", {3, 2}, 1);
  m.weight("b.l.weight", {3, 2}, 2);
  m.use("MatMul", "", {"a.l.weight"});
  m.use("MatMul", "", {"b.l.weight"});
  EXPECT_EQ(find(m).parameters(), (Strings{"a.l.weight 3x2", "b.l.weight 3x2"}));

  Model sequential; // nobody's attribute is called 0
  sequential.weight("net.0.weight", {3, 2}, 1);
  sequential.weight("net.2.weight", {3, 2}, 2);
  sequential.use("MatMul", "", {"net.0.weight"});
  sequential.use("MatMul", "", {"net.2.weight"});
  EXPECT_EQ(find(sequential).parameters(), (Strings{"net.0.weight 3x2", "net.2.weight 3x2"}));

  Model lone;
  lone.weight("fc.weight", {3, 2}, 1);
  lone.weight("fc.bias", {3}, 2);
  lone.use("Gemm", "", {"fc.weight", "fc.bias"});
  EXPECT_EQ(find(lone).parameters(), (Strings{"fc.weight 3x2", "fc.bias 3"}));
}

TEST(ParameterNames, FoldedTransposeIsNamedByItsPath) {
  Model m;
  m.weight("m.a.norm.weight", {2}, 1);
  m.weight("onnx::MatMul_919", {2, 3}, 2);
  m.use("Mul", "/m/a/norm/Mul", {"m.a.norm.weight"});
  m.use("MatMul", "/m/a/q/MatMul", {"onnx::MatMul_919"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(), (Strings{"a.norm.weight 2", "a.q.weight^T 3x2"}));
  EXPECT_EQ(f.uses(), "0.1:a.norm.weight 1.1:a.q.weight^T");
}

TEST(ParameterNames, IdentityWithAParametersNameIsAFalseTie) {
  Model m;
  m.weight("m.a.norm.weight", {2}, {1, 1});
  m.node("Identity", {"m.a.norm.weight"}, {"m.b.norm.weight"});
  m.node("Identity", {"m.b.norm.weight"}, {"m.c.norm.weight"});
  m.use("Mul", "/m/a/norm/Mul", {"m.a.norm.weight"});
  m.use("Mul", "/m/b/norm/Mul", {"m.b.norm.weight"});
  m.use("Mul", "/m/c/norm/Mul", {"m.c.norm.weight"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(), (Strings{"a.norm.weight 2", "b.norm.weight 2", "c.norm.weight 2"}));
  EXPECT_EQ(f.uses(), "2.1:a.norm.weight 3.1:b.norm.weight 4.1:c.norm.weight");
  EXPECT_EQ(f.table.parameters[2].source.offset, f.table.parameters[0].source.offset);

  ParameterOptions never;
  never.untie = ParameterOptions::Untie::Never;
  Found tied = find(m, never);
  EXPECT_EQ(tied.parameters(), Strings{"a.norm.weight 2"});
  EXPECT_EQ(tied.uses(), "2.1:a.norm.weight 3.1:a.norm.weight 4.1:a.norm.weight");
}

TEST(ParameterNames, IdentityOfAFoldedWeightIsASecondCall) {
  Model m;
  m.weight("m.a.q.bias", {3}, 1);
  m.weight("onnx::MatMul_1", {2, 3}, 2);
  m.node("Identity", {"onnx::MatMul_1"}, {"onnx::MatMul_2"});
  m.use("MatMul", "/m/a/q_1/MatMul", {"onnx::MatMul_2"}); // here the second call stands first
  m.use("Add", "/m/a/q_1/Add", {"m.a.q.bias"});
  m.use("MatMul", "/m/a/q/MatMul", {"onnx::MatMul_1"});
  m.use("Add", "/m/a/q/Add", {"m.a.q.bias"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(), (Strings{"a.q.weight^T 3x2", "a.q.bias 3"}));
  EXPECT_EQ(f.uses(), "1.1:a.q.weight^T 2.1:a.q.bias 3.1:a.q.weight^T 4.1:a.q.bias");
}

TEST(ParameterNames, SecondCallsAreKnownByTheirBias) {
  Model m; // two copies of one weight, without an Identity, without values
  m.weight("m.a.q.bias", {3}, 1);
  m.weight("onnx::MatMul_1", {2, 3}, 2)->clear_raw_data();
  m.weight("onnx::MatMul_2", {2, 3}, 2)->clear_raw_data();
  m.use("MatMul", "/m/a/q/MatMul", {"onnx::MatMul_1"});
  m.use("Add", "/m/a/q/Add", {"m.a.q.bias"});
  m.use("MatMul", "/m/a/q_1/MatMul", {"onnx::MatMul_2"});
  m.use("Add", "/m/a/q_1/Add", {"m.a.q.bias"});
  EXPECT_EQ(find(m).parameters(), (Strings{"a.q.weight^T 3x2", "a.q.bias 3"}));

  Model gated; // T5's wi_0 and wi_1 are two modules
  gated.weight("m.a.norm.weight", {2}, 1);
  gated.weight("onnx::MatMul_1", {2, 3}, 2)->clear_raw_data();
  gated.weight("onnx::MatMul_2", {2, 3}, 3)->clear_raw_data();
  gated.use("Mul", "/m/a/norm/Mul", {"m.a.norm.weight"});
  gated.use("MatMul", "/m/a/wi_0/MatMul", {"onnx::MatMul_1"});
  gated.use("MatMul", "/m/a/wi_1/MatMul", {"onnx::MatMul_2"});
  EXPECT_EQ(find(gated).parameters(),
            (Strings{"a.norm.weight 2", "a.wi_0.weight^T 3x2", "a.wi_1.weight^T 3x2"}));
}

TEST(ParameterNames, TransposedCopyIsTiedByValue) {
  auto with = [](std::vector<float> embedding, std::vector<float> head) {
    Model m;
    m.weight("m.shared.weight", {3, 2}, embedding);
    m.weight("m.norm.l.weight", {2}, 9);
    m.weight("onnx::MatMul_5", {2, 3}, head);
    m.node("Gather", {"m.shared.weight", "x"}, {"e"}, "/m/embed/Gather");
    m.use("Mul", "/m/norm/l/Mul", {"m.norm.l.weight"});
    m.use("MatMul", "/m/lm_head/MatMul", {"onnx::MatMul_5"});
    return find(m);
  };
  Found tied = with({1, 2, 3, 4, 5, 6}, {1, 3, 5, 2, 4, 6});
  EXPECT_EQ(tied.parameters(), (Strings{"shared.weight 3x2 =lm_head.weight", "norm.l.weight 2"}));
  EXPECT_EQ(tied.uses(), "0.0:shared.weight 1.1:norm.l.weight 2.1:shared.weight^T");
  // One bit off: a head of its own.
  Found own = with({1, 2, 3, 4, 5, 6}, {1, 3, 5, 2, 4, 7});
  EXPECT_EQ(own.parameters(),
            (Strings{"shared.weight 3x2", "norm.l.weight 2", "lm_head.weight^T 3x2"}));
  // Equal because constant: no tie.
  Found constant = with({1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1});
  EXPECT_EQ(constant.parameters().size(), 3u);
}

TEST(ParameterNames, ToldNamesStayApartHoweverEqual) {
  Model m; // a decoder that starts as a copy of the encoder
  m.weight("enc.l.weight", {2, 2}, {1, 2, 3, 4});
  m.weight("dec.l.weight", {2, 2}, {1, 2, 3, 4});
  m.use("MatMul", "", {"enc.l.weight"});
  m.use("MatMul", "", {"dec.l.weight"});
  EXPECT_EQ(find(m).parameters(), (Strings{"enc.l.weight 2x2", "dec.l.weight 2x2"}));

  ParameterOptions tie;
  tie.ties = {{"enc.l.weight", "dec.l.weight"}};
  EXPECT_EQ(find(m, tie).parameters(), Strings{"enc.l.weight 2x2 =dec.l.weight"});
  tie.ties = {{"enc.l.weight", "none"}};
  EXPECT_EQ(messageOf(findParameters(*llvm::cantFail(m.read()), tie)),
            "--tie: no parameter is called 'none'");
}

TEST(ParameterNames, TiesByOptionWantOneShape) {
  Model m;
  m.weight("m.a.weight", {2, 2}, 1);
  m.weight("m.b.c.weight", {2, 3}, 2);
  m.use("MatMul", "", {"m.a.weight"});
  m.use("MatMul", "", {"m.b.c.weight"});
  ParameterOptions tie;
  tie.ties = {{"a.weight", "b.c.weight"}};
  EXPECT_EQ(messageOf(findParameters(*llvm::cantFail(m.read()), tie)),
            "--tie: shapes differ: got 'a.weight' 2x2 and 'b.c.weight' 2x3");
}

TEST(ParameterNames, ConstantsAreNoParameters) {
  Model m;
  m.weight("m.l.weight", {2, 2}, 1);
  m.weight("m.l.gain", {}, 2); // a scalar with a name is a parameter
  m.weight("m.bn.running_mean", {2}, 3);
  m.weight("onnx::Mul_7", {1, 2}, 4);
  m.weight("/m/Constant_output_0", {2}, 5);
  m.weight("scale", {1}, 6);
  m.weight("W", {2, 2}, 7); // a model that no exporter wrote
  m.weight("B", {2}, 8);
  m.use("MatMul", "/m/l/MatMul", {"m.l.weight"});
  m.use("Mul", "/m/l/Mul", {"m.l.gain"});
  m.use("Sub", "/m/bn/Sub", {"m.bn.running_mean"});
  m.use("Mul", "/m/Mul", {"onnx::Mul_7"});
  m.use("Mul", "/m/Mul_1", {"/m/Constant_output_0"});
  m.use("Mul", "/m/Mul_2", {"scale"});
  m.use("MatMul", "", {"W"});
  m.use("Add", "", {"B"});
  EXPECT_EQ(find(m).parameters(), (Strings{"l.weight 2x2", "l.gain scalar", "W 2x2", "B 2"}));
}

TEST(ParameterNames, SubgraphsReadParametersToo) {
  Model m;
  m.weight("m.l.weight", {2, 2}, 1);
  m.weight("m.k.l.weight", {2, 2}, 2);
  m.use("MatMul", "/m/l/MatMul", {"m.l.weight"});
  onnx::AttributeProto *a = m.node("If", {"x"}, {"y"})->add_attribute();
  a->set_name("then_branch");
  addNode(a->mutable_g()->mutable_node(), "MatMul", {"x", "m.k.l.weight"}, {"r"}, "/m/k/l/MatMul");
  a->mutable_g()->add_output()->set_name("r");
  Found f = find(m);
  EXPECT_EQ(f.parameters(), (Strings{"l.weight 2x2", "k.l.weight 2x2"}));
  ASSERT_EQ(f.table.captures.size(), 1u);
  EXPECT_EQ(f.table.captures[0].value, "m.k.l.weight");
  EXPECT_EQ(f.table.captures[0].parameter, 1);
}

//--- dynamo exporter ------------------------------------------------------------------------------

struct DynamoModel : Model {
  DynamoModel() {
    addMetadata(graph()->mutable_metadata_props(),
                "pkg.torch.export.ExportedProgram.graph_signature",
                "\n# inputs\n"
                "p_m_a_norm_weight: PARAMETER target='m.a.norm.weight'\n"
                "p_m_b_norm_weight: PARAMETER target='m.b.norm.weight'\n"
                "p_m_q_weight: PARAMETER target='m.q.weight'\n"
                "p_m_q_bias: PARAMETER target='m.q.bias'\n"
                "p_m_c_weight: PARAMETER target='m.c.weight'\n"
                "p_m_c_bias: PARAMETER target='m.c.bias'\n"
                "b_m_inv_freq: BUFFER target='m.inv_freq' persistent=False\n"
                "input_ids: USER_INPUT\n\n# outputs\nlinear: USER_OUTPUT\n");
  }
  void use(const char *op, const char *target, const char *args, Names more,
           const char *module = "m.q") {
    onnx::NodeProto *n = Model::use(op, "node", more);
    addMetadata(n->mutable_metadata_props(), "pkg.torch.onnx.fx_node",
                std::string("%n : [num_users=1] = call_function[target=torch.ops.aten.") + target +
                    "](args = (" + args + "), kwargs = {})");
    addMetadata(n->mutable_metadata_props(), "pkg.torch.onnx.name_scopes",
                std::string("['', 'm', '") + module + "', 'n']");
  }
};

TEST(ParameterNames, FxNodesUntieMergedInitializers) {
  DynamoModel m;
  m.weight("m.a.norm.weight", {2}, {1, 1});
  m.use("Mul", "mul.Tensor", "%x, %p_m_a_norm_weight", {"m.a.norm.weight"});
  // Fused: the tensor's place among the arguments says nothing, but there is only one parameter.
  m.use("RMSNormalization", "mul.Tensor", "%p_m_b_norm_weight, %h", {"m.a.norm.weight"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(), (Strings{"a.norm.weight 2", "b.norm.weight 2"}));
  EXPECT_EQ(f.uses(), "0.1:a.norm.weight 1.1:b.norm.weight");

  ParameterOptions never;
  never.untie = ParameterOptions::Untie::Never;
  EXPECT_EQ(find(m, never).parameters(), Strings{"a.norm.weight 2"});
}

TEST(ParameterNames, LinearIsMatMulAndAdd) {
  DynamoModel m;
  m.weight("val_3", {2, 3}, 1);
  m.weight("m.q.bias", {3}, 2);
  m.weight("val_9", {2, 3}, 1);
  m.weight("one", {}, 7);
  m.use("MatMul", "linear.default", "%x, %p_m_q_weight, %p_m_q_bias", {"val_3"});
  m.use("Add", "linear.default", "%x, %p_m_q_weight, %p_m_q_bias", {"m.q.bias"});
  m.use("MatMul", "linear.default", "%y, %p_m_q_weight, %p_m_q_bias", {"val_9"}); // called twice
  m.use("Add", "add.Tensor", "%p_m_q_bias, 1.0", {"one"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(), (Strings{"q.weight^T 3x2", "q.bias 3"}));
  EXPECT_EQ(f.uses(), "0.1:q.weight^T 1.1:q.bias 2.1:q.weight^T");
}

TEST(ParameterNames, AWeightAndItsFoldedTransposeAreOne) {
  DynamoModel m;
  m.weight("val_3", {2, 3}, {1, 3, 5, 2, 4, 6});
  m.weight("m.q.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  m.use("MatMul", "linear.default", "%x, %p_m_q_weight", {"val_3"});
  m.node("Gather", {"m.q.weight", "x"}, {"e"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(), Strings{"q.weight 3x2"}); // the copy that lies as PyTorch has it
  EXPECT_EQ(f.uses(), "0.1:q.weight^T 1.0:q.weight");
  EXPECT_TRUE(f.table.notes.empty());

  // Names say the same, values do not.
  m.graph()->mutable_initializer(0)->mutable_raw_data()->back() ^= 1;
  Found apart = find(m);
  EXPECT_EQ(apart.parameters(), (Strings{"val_3^T 3x2", "q.weight 3x2"}));
  ASSERT_EQ(apart.table.notes.size(), 1u);
  EXPECT_EQ(apart.table.notes[0], "initializer 'val_3' seems to be 'm.q.weight', but another one "
                                  "of that name has other values: kept apart");
}

TEST(ParameterNames, SwappedInputsKeepTheirNames) {
  DynamoModel m;
  m.weight("m.a.norm.weight", {2}, 1);
  m.weight("m.b.norm.weight", {2}, 2);
  onnx::NodeProto *n = m.node("Mul", {"m.b.norm.weight", "m.a.norm.weight"}, {"p"});
  addMetadata(n->mutable_metadata_props(), "pkg.torch.onnx.fx_node",
              "%n : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = "
              "(%p_m_a_norm_weight, %p_m_b_norm_weight), kwargs = {})");
  EXPECT_EQ(find(m).uses(), "0.0:b.norm.weight 0.1:a.norm.weight");
}

TEST(ParameterNames, BuffersAndConstantsAreNoParameters) {
  DynamoModel m;
  m.weight("m.inv_freq", {4}, 1);
  m.weight("val_5", {2, 2}, 2);
  m.use("Mul", "mul.Tensor", "%x, %b_m_inv_freq", {"m.inv_freq"});
  m.use("Add", "add.Tensor", "%x, %full", {"val_5"});
  EXPECT_TRUE(find(m).parameters().empty());
}

TEST(ParameterNames, ATransposeInBetweenLeavesThePath) {
  DynamoModel m;
  m.weight("val_5", {2, 3}, 2);
  m.use("MatMul", "mm.default", "%x, %t_3", {"val_5"});
  EXPECT_EQ(find(m).parameters(), Strings{"q.weight^T 3x2"});
}

TEST(ParameterNames, DroppedBiasesComeBackAsZeros) {
  DynamoModel m;
  m.weight("m.q.weight", {3, 2}, 1);
  m.weight("m.c.weight", {4, 2, 3}, 2);
  m.use("Gemm", "linear.default", "%x, %p_m_q_weight, %p_m_q_bias", {"m.q.weight"});
  onnx::AttributeProto *transposed = m.graph()->mutable_node(0)->add_attribute();
  transposed->set_name("transB");
  transposed->set_i(1);
  m.use("Conv", "conv1d.default", "%x, %p_m_c_weight, %p_m_c_bias, [1], [1]", {"m.c.weight"});
  Found f = find(m);
  EXPECT_EQ(f.parameters(),
            (Strings{"q.weight 3x2", "q.bias 3 zeros", "c.weight 4x2x3", "c.bias 4 zeros"}));
  ASSERT_EQ(f.table.biases.size(), 2u);
  EXPECT_EQ(f.table.biases[0].node, 0);
  EXPECT_EQ(f.table.biases[0].input, 2);
  EXPECT_EQ(f.table.biases[0].parameter, 1);
  EXPECT_EQ(f.table.biases[1].node, 1);
  EXPECT_EQ(f.table.biases[1].parameter, 3);
}

TEST(ParameterNames, ALinearWithoutBiasGetsNone) {
  DynamoModel m;
  m.weight("m.q.weight", {3, 2}, 1);
  m.use("Gemm", "linear.default", "%x, %p_m_q_weight", {"m.q.weight"});
  EXPECT_TRUE(find(m).table.biases.empty());
}

} // namespace
