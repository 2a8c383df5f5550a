// SPDX-License-Identifier: Apache-2.0
// Exported models, imported and run: PyTorch's loss, and which values follow the batch.
#include "frontend/Importer.h"
#include "ir/graph/Verify.h"
#include "tests/frontend/Evaluate.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <gtest/gtest.h>

namespace shardc::test {
namespace {

std::string fileText(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// The arrays of a .safetensors file.
llvm::StringMap<Tensor> readArrays(const std::string &path) {
  std::string bytes = fileText(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  llvm::json::Value header =
      llvm::cantFail(llvm::json::parse(llvm::StringRef(bytes).substr(8, length)));
  llvm::StringMap<Tensor> arrays;
  for (auto &[name, entry] : *header.getAsObject()) {
    const llvm::json::Object *array = entry.getAsObject();
    if (!array->getArray("shape"))
      continue;
    Dims dims;
    for (const llvm::json::Value &d : *array->getArray("shape"))
      dims.push_back(*d.getAsInteger());
    Tensor tensor(*array->getString("dtype") == "I64" ? DType::I64 : DType::F32, dims);
    int64_t begin = *(*array->getArray("data_offsets"))[0].getAsInteger();
    std::memcpy(tensor.mutableData<char>(), bytes.data() + 8 + length + begin, tensor.numBytes());
    arrays[llvm::StringRef(name)] = tensor;
  }
  return arrays;
}

/// Rows of `tensor` from `first` on, `count` of them, going round after `count`, begun at `turn`.
Tensor rows(const Tensor &tensor, int64_t count, int64_t turn) {
  Dims dims(tensor.dims());
  int64_t row = tensor.numBytes() / dims[0];
  dims[0] = count;
  Tensor part(tensor.dtype(), dims);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(part.mutableData<char>() + i * row,
                static_cast<const char *>(tensor.bytes()) + (i + turn) % count * row, row);
  return part;
}

double distance(const Tensor &a, const Tensor &b) {
  double most = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    if (a.asDouble(i) != b.asDouble(i))
      most =
          std::max(most, std::abs(a.asDouble(i) - b.asDouble(i)) / (1 + std::abs(b.asDouble(i))));
  return most;
}

/// Numbers of rows where `each` of an item follow on those of the item before: what they are within their items.
Tensor withinItems(Tensor numbers, int64_t each) {
  for (int64_t i = 0; i < numbers.numElements(); ++i)
    numbers.mutableData<int64_t>()[i] -= i * each;
  return numbers;
}

struct Model {
  std::string folder, file;
  llvm::json::Value golden;
  std::unique_ptr<OnnxModel> onnx;
  std::unique_ptr<Graph> graph;
  int64_t batch = 0, src = 0;

  Model(std::string folder, std::string file)
      : folder(folder), file(file),
        golden(llvm::cantFail(llvm::json::parse(fileText(folder + "/golden.json")))) {
    onnx = llvm::cantFail(OnnxModel::open(folder + "/" + file));
    const llvm::json::Object &facts = *golden.getAsObject();
    batch = *facts.getInteger("batch");
    src = facts.getInteger("src").value_or(0);
    ImportOptions options;
    llvm::StringSet<> symbols;
    for (auto &input : onnx->graph().input())
      for (auto &dim : input.type().tensor_type().shape().dim())
        symbols.insert(dim.dim_param());
    for (const char *name : {"batch", "src", "tgt"})
      if (symbols.contains(name))
        options.dims.emplace_back(name, *facts.getInteger(name));
    if (!llvm::StringRef(file).contains("-loss")) {
      options.loss = *facts.getString("task") == "regress" ? "mse" : "cross_entropy";
      options.logits = "logits";
    }
    auto made = importOnnx(*onnx, options);
    if (made)
      graph = std::move(*made);
    else
      ADD_FAILURE() << folder << "/" << file << ": " << llvm::toString(made.takeError());
  }

  double wantedLoss() const {
    return *(*golden.getAsObject()
                  ->getObject("settings")
                  ->getObject("adamw")
                  ->getArray("loss64"))[0]
                .getAsNumber();
  }

  /// PyTorch's starting weights and the first batch, its items turned round by `turn`.
  llvm::StringMap<Tensor> given(int64_t turn) const {
    llvm::StringMap<Tensor> values, weights = readArrays(folder + "/golden.safetensors");
    for (auto &entry : readArrays(folder + "/data.safetensors"))
      values[entry.first()] = rows(entry.second, batch, turn);
    for (const Parameter &p : graph->parameters) {
      std::vector<std::string> names{p.name};
      names.insert(names.end(), p.ties.begin(), p.ties.end());
      for (const llvm::json::Value &group : *golden.getAsObject()->getArray("tied")) {
        std::vector<std::string> tied;
        for (const llvm::json::Value &name : *group.getAsArray())
          tied.push_back(name.getAsString()->str());
        if (llvm::is_contained(tied, p.name)) // any name of a tied parameter is right
          names.insert(names.end(), tied.begin(), tied.end());
      }
      for (const std::string &name : names)
        if (auto it = weights.find("param/" + name);
            it != weights.end() && !values.contains(p.name))
          values[p.name] = it->second;
      EXPECT_TRUE(values.contains(p.name))
          << file << ": PyTorch has no parameter called " << p.name;
    }
    return values;
  }
};

/// Folder and file of every model under `root` that has results of PyTorch.
std::vector<std::pair<std::string, std::string>> modelsUnder(const std::string &root) {
  std::vector<std::pair<std::string, std::string>> found;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(root, error), end; !error && it != end;
       it.increment(error)) {
    std::string folder = it->path();
    if (!llvm::sys::fs::exists(folder + "/golden.json"))
      continue;
    std::error_code inner;
    for (llvm::sys::fs::directory_iterator at(folder, inner); !inner && at != end;
         at.increment(inner))
      if (llvm::StringRef(at->path()).ends_with(".onnx"))
        found.emplace_back(folder, llvm::StringRef(at->path()).rsplit('/').second.str());
  }
  llvm::sort(found);
  return found;
}

void checkLoss(const std::string &root) {
  for (auto &[folder, file] : modelsUnder(root)) {
    SCOPED_TRACE(folder + "/" + file);
    Model model(folder, file);
    ASSERT_TRUE(model.graph);
    if (llvm::Error broken = verify(*model.graph))
      ADD_FAILURE() << llvm::toString(std::move(broken));
    EXPECT_TRUE(
        llvm::all_of(model.graph->parameters, [](const Parameter &p) { return p.trainable; }));
    auto values = evaluateGraph(*model.graph, model.given(0));
    if (!values) {
      ADD_FAILURE() << llvm::toString(values.takeError());
      continue;
    }
    double sum = (*values)[model.graph->output("loss_sum")].asDouble(0);
    double count = (*values)[model.graph->output("loss_count")].asDouble(0);
    EXPECT_NEAR(sum / count / model.wantedLoss(), 1, 1e-6);
  }
}

/// Turning the batch round by one item turns the rows of exactly the values that are marked.
void checkBatchMajor(const Model &model) {
  auto before = evaluateGraph(*model.graph, model.given(0)),
       after = evaluateGraph(*model.graph, model.given(1));
  ASSERT_TRUE(before && after);
  int marked = 0;
  for (const Op &op : model.graph->ops())
    for (unsigned i = 0; i < op.numResults(); ++i) {
      const Value *value = op.result(i);
      const Tensor &a = (*before)[value], &b = (*after)[value];
      if (value->batchMajor()) {
        ASSERT_EQ(a.dims()[0] % model.batch, 0) << value->name().str();
        Tensor turned = rows(a, a.dims()[0], a.dims()[0] / model.batch);
        // An item's last token is found by its number among all tokens of the batch, which tells the item.
        const bool areNumbers = a.dtype() == DType::I64 && a.dims() == llvm::ArrayRef(model.batch) && distance(turned, b) > 1e-4;
        if (areNumbers)
          turned = rows(withinItems(a, model.src), model.batch, 1);
        EXPECT_LT(distance(turned, areNumbers ? withinItems(b, model.src) : b), 1e-4) << value->name().str();
        ++marked;
      }
      // A dropout must know whether its operand follows the batch.
      if (op.is(kDropout)) {
        EXPECT_TRUE(value->batchMajor() || distance(a, b) < 1e-3) << value->name().str();
        EXPECT_EQ(op.attrs.getInt("batch_major"), int64_t(value->batchMajor()));
      }
    }
  EXPECT_GT(marked, 10);
}

TEST(Models, BundledOnesGivePyTorchsLoss) {
  ASSERT_FALSE(modelsUnder("tests/models").empty());
  checkLoss("tests/models");
}

TEST(Models, BatchMajorValuesFollowTheBatch) {
  for (auto &[folder, file] : modelsUnder("tests/models")) {
    SCOPED_TRACE(folder + "/" + file);
    Model model(folder, file);
    ASSERT_TRUE(model.graph);
    checkBatchMajor(model);
  }
}

/// A larger collection beside the project, where there is one.
TEST(ModelsLong, SharedOnesGivePyTorchsLoss) {
  if (modelsUnder("../shared/models").empty())
    GTEST_SKIP() << "no models at ../shared/models";
  checkLoss("../shared/models");
}

TEST(Models, RealSizesImportWithoutTheirWeights) {
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it("../shared/models/full", error), end;
       !error && it != end; it.increment(error))
    if (llvm::StringRef(it->path()).ends_with(".onnx"))
      files.push_back(it->path());
  if (files.empty())
    GTEST_SKIP() << "no models at ../shared/models/full";
  llvm::sort(files);
  for (const std::string &file : files) {
    SCOPED_TRACE(file);
    auto model = OnnxModel::open(file);
    ASSERT_TRUE(bool(model));
    ImportOptions options;
    options.dims = {{"batch", 8}, {"src", 128}};
    if (!llvm::StringRef(file).contains("deberta"))
      options.dims.emplace_back("tgt", 128);
    auto graph = importOnnx(**model, options);
    if (!graph) {
      ADD_FAILURE() << llvm::toString(graph.takeError());
      continue;
    }
    for (const Parameter &p : (*graph)->parameters)
      EXPECT_TRUE(p.trainable) << p.name;
    EXPECT_TRUE(llvm::any_of((*graph)->parameters,
                             [](auto &p) { return p.source.kind == ValueSource::Absent; }));
    for (const Op &op : (*graph)->ops())
      EXPECT_LT(op.is(kConstant) ? op.result()->type().numBytes() : 0, 8 << 20) << op.place;
  }
}

} // namespace
} // namespace shardc::test
