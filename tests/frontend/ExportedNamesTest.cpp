// SPDX-License-Identifier: Apache-2.0
// Every exported graph of a folder has the parameters that PyTorch's model had: names, shapes,
// ties, values.
#include "frontend/OnnxFile.h"
#include "frontend/ParameterNames.h"
#include "runtime/ArrayFile.h"
#include "tests/runtime/TestFiles.h"
#include "llvm/Support/JSON.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>

using namespace shardc;
using namespace shardc::test;

namespace {

/// Values of a parameter as PyTorch has them, row by row.
std::vector<float> values(const ModelParameter &p) {
  std::vector<float> stored(numElements(p.dims)), result = stored;
  if (p.source.state == TensorSource::State::Zeros)
    return result;
  std::memcpy(stored.data(), p.source.data, p.source.length);
  if (!p.transposed)
    return stored;
  int64_t rows = p.dims[0], columns = p.dims[1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[i * columns + j] = stored[j * rows + i];
  return result;
}

/// The name that golden.safetensors uses for each of several tied ones.
std::map<std::string, std::string> tiedNames(const std::string &path) {
  std::map<std::string, std::string> first;
  auto text = llvm::MemoryBuffer::getFile(path);
  llvm::json::Value json = llvm::cantFail(llvm::json::parse((*text)->getBuffer()));
  if (const llvm::json::Array *groups = json.getAsObject()->getArray("tied"))
    for (const llvm::json::Value &group : *groups)
      for (const llvm::json::Value &name : *group.getAsArray())
        first[name.getAsString()->str()] = group.getAsArray()->front().getAsString()->str();
  return first;
}

void check(const std::string &path, const std::string &folder) {
  SCOPED_TRACE(path);
  auto model = OnnxModel::open(path);
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  auto table = findParameters(**model);
  ASSERT_TRUE(bool(table)) << messageOf(std::move(table));
  EXPECT_TRUE(table->notes.empty());
  auto golden = llvm::cantFail(ArrayFile::open(folder + "/golden.safetensors"));
  std::map<std::string, std::string> tied = tiedNames(folder + "/golden.json");
  auto canonical = [&](const std::string &name) { return tied.contains(name) ? tied[name] : name; };
  std::map<std::string, const ModelParameter *> found;
  for (const ModelParameter &p : table->parameters) {
    EXPECT_TRUE(found.try_emplace(canonical(p.name), &p).second) << p.name << " is there twice";
    for (const std::string &other : p.otherNames)
      EXPECT_EQ(canonical(other), canonical(p.name));
  }
  for (const FileArray &array : golden->arrays()) {
    llvm::StringRef name = array.name;
    if (!name.consume_front("param/"))
      continue;
    auto p = found.find(name.str());
    if (p == found.end()) {
      ADD_FAILURE() << name.str() << " is missing";
      continue;
    }
    EXPECT_EQ(llvm::ArrayRef(p->second->dims), llvm::ArrayRef(array.dims)) << name.str();
    const uint8_t *want = llvm::cantFail(golden->data(array));
    std::vector<float> got = values(*p->second);
    EXPECT_EQ(got.size() * 4, array.numBytes);
    EXPECT_EQ(std::memcmp(got.data(), want, array.numBytes), 0) << name.str();
    found.erase(p);
  }
  for (auto &[name, p] : found)
    ADD_FAILURE() << name << " is no parameter of the model";
}

/// Checks the graphs of all folders in `root` that hold PyTorch's weights; returns how many there
/// were.
int checkAll(const std::string &root) {
  int graphs = 0;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator folder(root, error), end; folder != end && !error;
       folder.increment(error)) {
    if (!llvm::sys::fs::exists(folder->path() + "/golden.safetensors"))
      continue;
    for (llvm::sys::fs::directory_iterator file(folder->path(), error); file != end && !error;
         file.increment(error))
      if (llvm::StringRef(file->path()).ends_with(".onnx")) {
        check(file->path(), folder->path());
        ++graphs;
      }
  }
  return graphs;
}

TEST(ExportedNames, OwnModels) { EXPECT_GE(checkAll(SHARDC_SOURCE_DIR "/tests/models"), 10); }

TEST(ExportedNames, ModelsBesideTheSource) {
  if (!checkAll(SHARDC_SOURCE_DIR "/../shared/models"))
    GTEST_SKIP() << "no models there";
}

} // namespace
