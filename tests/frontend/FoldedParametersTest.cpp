// SPDX-License-Identifier: Apache-2.0
// Constants that an exporter computed from parameters: refused, where it is not just a tie or a mask.
#include "frontend/ParameterNames.h"
#include "ir/base/Error.h"
#include "tests/frontend/OnnxBuilder.h"
#include <gtest/gtest.h>

namespace shardc::test {
namespace {

constexpr float kMany[] = {0.5f, -1.25f, 3, 0.125f, 2, 9, -7, 1};
constexpr float kMask[] = {0, -1e9f, 0, 0, -1e9f, 0, 0, 0};

/// m.encoder.attention adds a constant to its scores; its bias is not in the file, nor is an embedding that is tied.
OnnxBuilder model(const char *constant, llvm::ArrayRef<float> values, const char *module = "m.encoder.attention") {
  OnnxBuilder m;
  addMetadata(m.graph()->mutable_metadata_props(), "pkg.torch.export.ExportedProgram.graph_signature",
              "\n# inputs\n"
              "p_m_shared_weight: PARAMETER target='m.shared.weight'\n"
              "p_m_lm_head_weight: PARAMETER target='m.lm_head.weight'\n"
              "p_m_encoder_attention_relative_bias_weight: PARAMETER target='m.encoder.attention.relative_bias.weight'\n");
  m.input("x");
  m.weight("m.shared.weight", {2, 8}, 1);
  m.weight(constant, {1, 8}, values);
  m.node("MatMul", {"x", "m.shared.weight"}, {"scores"}, "product");
  onnx::NodeProto *add = m.node("Add", {"scores", constant}, {"y"}, "sum");
  addMetadata(add->mutable_metadata_props(), "pkg.torch.onnx.name_scopes", std::string("['', 'm', '") + module + "', 'add_1']");
  m.output("y");
  return m;
}

std::string errorOf(const OnnxBuilder &m) {
  auto opened = llvm::cantFail(m.read());
  auto table = findParameters(*opened);
  return table ? "" : llvm::toString(table.takeError());
}

TEST(FoldedParameters, AreRefusedByTheNearestName) {
  EXPECT_EQ(errorOf(model("unsqueeze_14", kMany)),
            "m.onnx: the exporter computed constants, it seems from parameters, which would not be trained: got 'unsqueeze_14', read in "
            "'m.encoder.attention', but no 'm.encoder.attention.relative_bias.weight'\n"
            "hint: export without optimisation: torch.onnx.export(..., dynamo=True, optimize=False)");
}

TEST(FoldedParameters, MasksBuffersAndOtherModulesAreNot) {
  EXPECT_EQ(errorOf(model("where_2", kMask)), "");
  EXPECT_EQ(errorOf(model("m.encoder.attention.inv_freq", kMany)), "");
  EXPECT_EQ(errorOf(model("unsqueeze_14", kMany, "m.decoder")), "");
}

TEST(FoldedParameters, OfTorchScriptHaveItsNames) {
  auto without = [](const char *constant, llvm::ArrayRef<float> values) {
    OnnxBuilder m = model(constant, values);
    m.graph()->clear_metadata_props();
    return errorOf(m);
  };
  EXPECT_EQ(without("onnx::Add_431", kMany),
            "m.onnx: the exporter computed constants, it seems from parameters, which would not be trained: got 'onnx::Add_431', read in "
            "'m.encoder.attention'\nhint: export without optimisation: torch.onnx.export(..., do_constant_folding=False)");
  EXPECT_EQ(without("onnx::Add_431", kMask), "");
}

} // namespace
} // namespace shardc::test
