// SPDX-License-Identifier: Apache-2.0
// ONNX's own node cases (Debian: libonnx-testdata): each model is imported and run, its results are
// compared.
#include "frontend/Importer.h"
#include "frontend/NodeContext.h"
#include "frontend/OnnxTensor.h"
#include "tests/frontend/Evaluate.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace shardc::test {
namespace {

constexpr llvm::StringLiteral kData = SHARDC_ONNX_TEST_DATA;

/// Cases of our nodes that we do not pass, and why.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kExceptions[] = {
    {"test_training_dropout", "holds the random numbers of numpy"},
    {"test_reduce_max_empty_set", "the largest of no elements is refused"},
    {"test_reduce_min_empty_set", "the smallest of no elements is refused"},
    {"test_reduce_log_sum_exp_empty_set", "needs the largest of no elements"},
};

std::string read(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// One tensor of a case; nullopt if it has a type that we do not know.
std::optional<Tensor> readTensor(const llvm::Twine &path) {
  onnx::TensorProto proto;
  if (!proto.ParseFromString(read(path)))
    return std::nullopt;
  auto dtype = onnxDType(proto.data_type());
  if (!dtype)
    return std::nullopt;
  Dims dims(proto.dims().begin(), proto.dims().end());
  auto elements =
      checkedNumElements(dims); // a file of another kind of value parses too, as nonsense
  bool raw = elements && int64_t(proto.raw_data().size()) == *elements * byteSize(*dtype);
  if (!elements || (!raw && proto.float_data_size() != *elements))
    return std::nullopt;
  Tensor tensor(*dtype, dims);
  if (raw)
    std::memcpy(tensor.mutableData<char>(), proto.raw_data().data(), proto.raw_data().size());
  else
    llvm::copy(proto.float_data(), tensor.mutableData<float>());
  return tensor;
}

/// "" if they agree, as ONNX's own runner compares.
std::string difference(const Tensor &got, const Tensor &want) {
  if (got.dtype() != want.dtype() || got.dims() != want.dims())
    return "got " + toString(Type(got.dtype(), got.dims())) + ", wanted " +
           toString(Type(want.dtype(), want.dims()));
  double rtol = want.dtype() == DType::F16 || want.dtype() == DType::BF16 ? 1e-2 : 1e-3;
  for (int64_t i = 0; i < want.numElements(); ++i) {
    double a = got.asDouble(i), b = want.asDouble(i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-7 + rtol * std::abs(b))
      continue;
    return "element " + std::to_string(i) + ": got " + std::to_string(a) + ", wanted " +
           std::to_string(b);
  }
  return "";
}

struct Case {
  enum Verdict { Pass, Unsupported, Fail } verdict;
  std::string reason;
};

using Tensors = std::vector<std::pair<std::string, Tensor>>;

Case runOnce(const OnnxModel &model, const Tensors &inputs, const Tensors &wanted, bool folded) {
  ImportOptions options;
  options.loss = "none";
  llvm::StringMap<Tensor> given;
  for (auto &[name, tensor] : inputs)
    (folded ? options.constants : given)[name] = tensor;
  auto graph = importOnnx(model, options);
  if (!graph) {
    std::string message = llvm::toString(graph.takeError());
    return {llvm::StringRef(message).contains("not supported") ? Case::Unsupported : Case::Fail,
            message};
  }
  for (auto &[name, tensor] : parameterValues(**graph))
    given[name] = tensor;
  auto values = evaluateGraph(**graph, given);
  if (!values)
    return {Case::Fail, llvm::toString(values.takeError())};
  for (auto &[name, want] : wanted)
    if (std::string wrong = difference((*values)[(*graph)->output(name)], want); !wrong.empty())
      return {Case::Fail, name + ": " + wrong};
  return {Case::Pass, ""};
}

/// Values as inputs first, since that is how models are trained; as constants where the nodes need
/// to know them.
Case run(const std::string &folder) {
  auto model = OnnxModel::open(folder + "/model.onnx");
  if (!model)
    return {Case::Unsupported, llvm::toString(model.takeError())};
  Tensors inputs, wanted;
  auto collect = [&](const auto &infos, const char *kind, Tensors &tensors) {
    for (int i = 0; i < infos.size(); ++i) {
      auto tensor =
          readTensor(folder + "/test_data_set_0/" + kind + "_" + std::to_string(i) + ".pb");
      if (!tensor)
        return false;
      tensors.emplace_back(infos[i].name(), *tensor);
    }
    return true;
  };
  const onnx::GraphProto &graph = (*model)->graph();
  if (!collect(graph.input(), "input", inputs) || !collect(graph.output(), "output", wanted))
    return {Case::Unsupported, "a tensor has a type that we do not know"};
  Case asInputs = runOnce(**model, inputs, wanted, false);
  if (asInputs.verdict != Case::Unsupported)
    return asInputs;
  return runOnce(**model, inputs, wanted, true);
}

bool isKnown(const OnnxModel &model) {
  return llvm::all_of(model.graph().node(), [](const onnx::NodeProto &node) {
    return (node.domain().empty() || node.domain() == "ai.onnx") &&
           (findNodeRule(node.op_type()) || findOneToOne(node.op_type()));
  });
}

TEST(OnnxNodes, AgreeWithOnnxsOwnCases) {
  std::string root = (kData + "/node").str();
  if (!llvm::sys::fs::is_directory(root))
    GTEST_SKIP() << "no node cases at " << root << ": apt install libonnx-testdata";
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(root, error), end; !error && it != end;
       it.increment(error))
    names.push_back(it->path());
  llvm::sort(names);

  std::map<std::string, std::array<int, 3>> table; // by type of the first node
  int passed = 0, unknown = 0, refused = 0;
  std::string reasons;
  for (const std::string &folder : names) {
    llvm::StringRef name = llvm::StringRef(folder).rsplit('/').second;
    auto model = OnnxModel::open(folder + "/model.onnx");
    if (!model) {
      llvm::consumeError(model.takeError()); // another opset or element type
      ++refused;
      continue;
    }
    if (!isKnown(**model) || (*model)->graph().node_size() == 0) {
      ++unknown;
      continue;
    }
    Case result = run(folder);
    ++table[(*model)->graph().node(0).op_type()][result.verdict];
    passed += result.verdict == Case::Pass;
    bool expected = llvm::any_of(kExceptions, [&](auto &e) { return name.starts_with(e.first); });
    if (result.verdict == Case::Fail && !expected)
      ADD_FAILURE() << name.str() << ": " << result.reason;
    else if (result.verdict != Case::Pass)
      reasons += "  " + name.str() + ": " + result.reason + "\n";
  }
  llvm::outs() << "cases: " << names.size() << ", nodes that we lack: " << unknown
               << ", opsets or types that we lack: " << refused << ", passed: " << passed
               << "\n  node                          pass unsupported fail\n";
  for (auto &[node, counts] : table)
    llvm::outs() << llvm::format("  %-28s %5d %11d %4d\n", node.c_str(), counts[0], counts[1],
                                 counts[2]);
  llvm::outs() << "not passed:\n" << reasons;
  EXPECT_GE(passed, 500);
}

} // namespace
} // namespace shardc::test
