// SPDX-License-Identifier: Apache-2.0
// Models that are wrong in random ways: each gives an error that says something, or a graph that is
// sound.
#include "frontend/NodeContext.h"
#include "tests/frontend/ImportHelpers.h"
#include <random>

namespace shardc::test {
namespace {

class Dice {
public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return int64_t(engine_() % uint64_t(n)); }
  bool oneIn(int64_t n) { return below(n) == 0; }
  template <typename T> const T &of(llvm::ArrayRef<T> list) { return list[below(list.size())]; }
  int64_t number() {
    constexpr int64_t kOdd[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                4,
                                5,
                                7,
                                100,
                                -100,
                                int64_t(1) << 31,
                                int64_t(1) << 40,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
    return oneIn(3) ? of<int64_t>(kOdd) : below(4);
  }

private:
  std::mt19937_64 engine_;
};

/// What an import of `bytes` gives must be sound.
void importBytes(const std::string &bytes, const ImportOptions &options, int &sound) {
  auto model = OnnxModel::read(llvm::MemoryBuffer::getMemBufferCopy(bytes, "damaged.onnx"));
  if (!model) {
    EXPECT_FALSE(llvm::toString(model.takeError()).empty());
    return;
  }
  auto graph = importOnnx(**model, options);
  if (!graph) {
    EXPECT_GT(llvm::toString(graph.takeError()).size(), 10u);
    return;
  }
  if (llvm::Error broken = verify(**graph))
    ADD_FAILURE() << llvm::toString(std::move(broken));
  ++sound;
}

std::vector<std::string> knownNodes() {
  std::vector<std::string> names;
  for (auto family : {kShapeRules, kMovementRules, kMathRules, kReductionRules, kProductRules,
                      kEinsumRules, kAttentionRules, kLossRules, kControlRules})
    for (const NodeRule &rule : family)
      names.push_back(rule.node);
  for (const OpDef *def : allOps())
    if (def->onnx.node)
      names.push_back(def->onnx.node);
  return names;
}

void randomAttribute(Dice &dice, onnx::NodeProto *node) {
  constexpr const char *kNames[] = {
      "axis",      "axes",         "perm",      "to",           "keepdims",    "transA",
      "group",     "kernel_shape", "strides",   "pads",         "dilations",   "batch_dims",
      "equation",  "mode",         "reduction", "ignore_index", "num_outputs", "allowzero",
      "start",     "end",          "alpha",     "epsilon",      "q_num_heads", "kv_num_heads",
      "is_causal", "upper",        "fmod",      "auto_pad",     "value"};
  onnx::AttributeProto *attr = node->add_attribute();
  attr->set_name(dice.of<const char *>(kNames));
  switch (dice.below(4)) {
  case 0:
    attr->set_type(onnx::AttributeProto::FLOAT);
    attr->set_f(float(dice.number()));
    break;
  case 1:
    attr->set_type(onnx::AttributeProto::INTS);
    for (int64_t i = dice.below(5); i-- > 0;)
      attr->add_ints(dice.number());
    break;
  case 2: {
    constexpr const char *kTexts[] = {
        "sum", "none", "ij,jk->ik", "...ii->...", "a,b,c->abc", "->", "SAME_UPPER", "edge", ""};
    attr->set_type(onnx::AttributeProto::STRING);
    attr->set_s(dice.of<const char *>(kTexts));
    break;
  }
  default:
    attr->set_type(onnx::AttributeProto::INT);
    attr->set_i(dice.number());
  }
}

/// Every kind of node, with operands of random types and attributes of random names and values.
TEST(ImporterDamage, RandomNodes) {
  std::vector<std::string> nodes = knownNodes();
  int sound = 0;
  for (uint64_t seed = 0; seed < 12000; ++seed) {
    Dice dice(seed);
    constexpr int kOpsets[] = {13, 17, 18, 23};
    TestModel m(dice.of<int>(kOpsets));
    constexpr int kTypes[] = {onnx::TensorProto::FLOAT, onnx::TensorProto::INT64,
                              onnx::TensorProto::BOOL, onnx::TensorProto::FLOAT};
    constexpr const char *kDims[] = {"1", "2", "3", "4", "0"};
    onnx::NodeProto *node = m.node(dice.of<std::string>(nodes).c_str(), {}, {}, "n");
    for (int64_t i = 0, count = dice.below(5); i < count; ++i) {
      std::string name = "x" + std::to_string(i);
      if (dice.oneIn(2)) {
        onnx::ValueInfoProto *info = m.graph()->add_input();
        info->set_name(name);
        auto *type = info->mutable_type()->mutable_tensor_type();
        type->set_elem_type(dice.of<int>(kTypes));
        type->mutable_shape();
        for (int64_t rank = dice.below(5); rank-- > 0;)
          type->mutable_shape()->add_dim()->set_dim_value(
              std::atoi(kDims[dice.below(dice.oneIn(8) ? 5 : 4)]));
      } else if (dice.oneIn(3)) {
        m.weight(name, {2, 3}, int(i));
      } else {
        llvm::SmallVector<int64_t> values;
        for (int64_t k = dice.below(4); k-- > 0;)
          values.push_back(dice.number());
        if (values.size() == 1 && dice.oneIn(2))
          m.integers(name, {}, values);
        else
          m.integers(name, {int64_t(values.size())}, values);
      }
      node->add_input(dice.oneIn(12) ? "" : name);
    }
    for (int64_t i = dice.below(3); i-- > 0;)
      randomAttribute(dice, node);
    for (int64_t i = 0, count = 1 + dice.below(3); i < count; ++i) {
      node->add_output("y" + std::to_string(i));
      m.output(("y" + std::to_string(i)).c_str());
    }
    ImportOptions options;
    options.loss = "none";
    SCOPED_TRACE(node->ShortDebugString());
    importBytes(m.bytes(), options, sound);
  }
  EXPECT_GT(sound, 200); // otherwise the nodes are too random to say anything
}

/// A real model with one thing changed at a time.
TEST(ImporterDamage, ChangedModels) {
  int sound = 0;
  std::vector<std::string> nodes = knownNodes();
  for (const char *path :
       {"tests/models/tiny-mlp/ts17-loss.onnx", "tests/models/tiny-t5/dyn23-loss.onnx",
        "tests/models/tiny-deberta/ts17-logits.onnx"}) {
    auto file = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(file)) << path;
    onnx::ModelProto original;
    ASSERT_TRUE(original.ParseFromString((*file)->getBuffer().str()));
    ImportOptions options;
    options.dims = {{"batch", 2}};
    if (!llvm::StringRef(path).contains("mlp"))
      options.dims.emplace_back("src", 5);
    if (llvm::StringRef(path).contains("t5"))
      options.dims.emplace_back("tgt", 4);
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Dice dice(seed);
      onnx::ModelProto model = original;
      onnx::GraphProto *graph = model.mutable_graph();
      onnx::NodeProto *node = graph->mutable_node(dice.below(graph->node_size()));
      switch (dice.below(6)) {
      case 0:
        node->set_op_type(dice.of<std::string>(nodes));
        break;
      case 1:
        if (node->input_size())
          node->set_input(dice.below(node->input_size()),
                          graph->initializer(dice.below(graph->initializer_size())).name());
        break;
      case 2:
        if (node->input_size())
          node->mutable_input()->RemoveLast();
        break;
      case 3:
        for (onnx::AttributeProto &attr : *node->mutable_attribute())
          if (attr.type() == onnx::AttributeProto::INT)
            attr.set_i(dice.number());
          else if (attr.type() == onnx::AttributeProto::INTS && attr.ints_size())
            attr.set_ints(dice.below(attr.ints_size()), dice.number());
        break;
      case 4: {
        onnx::TensorProto *tensor =
            graph->mutable_initializer(dice.below(graph->initializer_size()));
        if (tensor->data_type() == onnx::TensorProto::INT64 && tensor->raw_data().size() >= 8) {
          int64_t value = dice.number();
          std::memcpy(&(*tensor->mutable_raw_data())[0], &value, 8);
        } else if (tensor->dims_size() == 2) {
          tensor->mutable_dims()->SwapElements(0, 1);
        }
        break;
      }
      default:
        randomAttribute(dice, node);
      }
      SCOPED_TRACE(std::string(path) + " seed " + std::to_string(seed) + " " +
                   node->ShortDebugString());
      importBytes(model.SerializeAsString(), options, sound);
    }
  }
  EXPECT_GT(sound, 50);
}

} // namespace
} // namespace shardc::test
