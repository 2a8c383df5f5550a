// SPDX-License-Identifier: Apache-2.0
// The files in tests/runtime/data were written by NumPy and safetensors (make.py there); the values
// below are theirs.
#include "runtime/ArrayFile.h"
#include "TestFiles.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

template <typename T> std::vector<T> valuesOf(ArrayFile &file, llvm::StringRef name) {
  const FileArray *array = file.find(name);
  if (!array || !array->dtype)
    return {};
  llvm::Expected<const uint8_t *> data = file.data(*array);
  if (!data) {
    llvm::consumeError(data.takeError());
    return {};
  }
  std::vector<T> values(array->numBytes / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), *data, array->numBytes);
  return values;
}

Dims dimsOf(ArrayFile &file, llvm::StringRef name) { return file.find(name)->dims; }

class ArrayFiles : public testing::TestWithParam<const char *> {};

TEST_P(ArrayFiles, GiveWhatPythonWrote) {
  auto file = llvm::cantFail(ArrayFile::open(dataFile(GetParam())));
  EXPECT_EQ(valuesOf<int64_t>(*file, "input_ids"),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(dimsOf(*file, "input_ids"), (Dims{4, 3}));
  EXPECT_EQ(valuesOf<int32_t>(*file, "labels"),
            (std::vector<int32_t>{1, -100, 0, 2, 3, 3, -100, 1}));
  EXPECT_EQ(valuesOf<uint16_t>(*file, "weight"),
            (std::vector<uint16_t>{0x3800, 0xbd00, 0x01f7, 0x7bff}));
  EXPECT_EQ(file->find("weight")->dtype, DType::F16);
  EXPECT_EQ(valuesOf<float>(*file, "x"), (std::vector<float>{1.5f, 2.25f, -3.0f, 1e30f}));
  EXPECT_EQ(dimsOf(*file, "x"), (Dims{2, 2, 1}));
  EXPECT_EQ(valuesOf<double>(*file, "scalar"), (std::vector<double>{2.5}));
  EXPECT_EQ(dimsOf(*file, "scalar"), Dims{});
  EXPECT_EQ(dimsOf(*file, "empty"), (Dims{0, 3}));
  EXPECT_EQ(file->find("empty")->numBytes, 0u);
  EXPECT_EQ(file->find("mask")->dtype, DType::Bool);
  EXPECT_EQ(valuesOf<uint8_t>(*file, "mask"), (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(valuesOf<uint8_t>(*file, "bytes"), (std::vector<uint8_t>{7, 255}));
  EXPECT_EQ(file->find("nothing"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Formats, ArrayFiles,
                         testing::Values("arrays.safetensors", "stored.npz", "deflated.npz"),
                         [](const auto &info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(ArrayFile, NamesTheTypesThatItHasNoUseFor) {
  auto file = llvm::cantFail(ArrayFile::open(dataFile("stored.npz")));
  auto typeOf = [&](llvm::StringRef name) {
    EXPECT_FALSE(file->find(name)->dtype) << name.str();
    return file->find(name)->typeName;
  };
  EXPECT_EQ(typeOf("big_endian"), ">f4");
  EXPECT_EQ(typeOf("columns"), "<f4 in Fortran order");
  EXPECT_EQ(typeOf("int8"), "|i1");
  EXPECT_EQ(typeOf("pair"), "structured");
  EXPECT_EQ(typeOf("text"), "<U2");
}

TEST(ArrayFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(messageOf(ArrayFile::open("/nowhere/a.npz")),
            "/nowhere/a.npz: cannot be opened: No such file or directory");
  EXPECT_EQ(messageOf(ArrayFile::open("/dev/zero")),
            "/dev/zero: is not a file: got a folder or device, wanted a regular file");
  TemporaryFolder folder;
  EXPECT_EQ(messageOf(ArrayFile::open(folder.write("a", ""))),
            "a: is no .safetensors or .npz file: got 0 bytes");
}

// Every file cut off anywhere, and every byte of it changed in turn, is an error or a file that can
// be read to its end.
TEST(ArrayFile, SurvivesDamage) {
  TemporaryFolder folder;
  unsigned refused = 0;
  for (const char *name : {"arrays.safetensors", "deflated.npz"}) {
    auto buffer = llvm::MemoryBuffer::getFile(dataFile(name));
    ASSERT_TRUE(bool(buffer));
    std::string good = (*buffer)->getBuffer().str();
    auto readAll = [&](llvm::StringRef bytes) {
      auto file = ArrayFile::open(folder.write("damaged", bytes));
      if (!file) {
        llvm::consumeError(file.takeError());
        return false;
      }
      unsigned sum = 0;
      for (const FileArray &array : (*file)->arrays()) {
        if (!array.dtype)
          continue;
        auto data = (*file)->data(array);
        if (!data) {
          llvm::consumeError(data.takeError());
          return false;
        }
        for (uint64_t i = 0; i < array.numBytes; ++i)
          sum += (*data)[i];
      }
      return sum != ~0u;
    };
    EXPECT_TRUE(readAll(good)) << name;
    for (size_t i = 0; i < good.size(); ++i) {
      EXPECT_FALSE(readAll(llvm::StringRef(good).take_front(i))) << name << " cut off after " << i;
      std::string bad = good;
      bad[i] = char(bad[i] ^ (1 << (i % 8)));
      refused += !readAll(bad);
    }
  }
  EXPECT_GT(refused, 1000u);
}

} // namespace
