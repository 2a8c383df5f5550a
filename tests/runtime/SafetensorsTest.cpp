// SPDX-License-Identifier: Apache-2.0
#include "runtime/Safetensors.h"
#include "TestFiles.h"
#include "llvm/Support/Endian.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

/// A file with the given header and `size` zero bytes of data, judged by the reader.
std::string judge(llvm::StringRef header, size_t size) {
  TemporaryFolder folder;
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  return messageOf(ArrayFile::open(
      folder.write("f", std::string(length, 8) + header.str() + std::string(size, '\0'))));
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  EXPECT_EQ(judge("{}", 0), "no error");
  EXPECT_EQ(
      judge(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   )",
          8),
      "no error");
  EXPECT_EQ(judge(R"({"b":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[4,6]},
                      "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},
                      "none":{"dtype":"I64","shape":[3,0],"data_offsets":[4,4]}})",
                  6),
            "no error");
}

TEST(Safetensors, RefusesDamagedHeaders) {
  EXPECT_EQ(judge("[]", 0), "f: header is damaged: got another JSON value, wanted an object");
  EXPECT_EQ(judge(R"({"a":1})", 0),
            "f/a: header entry is damaged: wanted dtype, shape and two data_offsets");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4),
            "f/a: unknown dtype: got \"F33\", wanted one of safetensors' types");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
            "f/a: shape is damaged: wanted integers from 0");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4),
            "f/a: shape is damaged: wanted integers from 0");
  EXPECT_EQ(
      judge(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      "f/a: shape is too large: got 4294967296x4294967296, wanted at most 2^63 - 1 elements");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}})", 4),
            "f/a: data_offsets lie outside of the file: got a file with 4 bytes of data, wanted "
            "offsets inside it");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
            "f/a: data_offsets lie outside of the file: got a file with 4 bytes of data, wanted "
            "offsets inside it");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
            "f/a: size does not fit the shape: got 8 bytes, wanted 12 for F32 3");
  EXPECT_EQ(judge(std::string(100000, '['), 0), "f: header is damaged: nested too deep: got more than 8 levels, wanted at most 8");
}

TEST(Safetensors, RefusesOverlapHolesAndDuplicates) {
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                      "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  8),
            "f/b: overlaps another array: got data_offsets from 4, wanted 8");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
            "f/a: unused bytes before this array: got data_offsets from 4, wanted 0");
  EXPECT_EQ(judge(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 3),
            "f: bytes at the end belong to no array: got 64 bytes, wanted 62");
  EXPECT_EQ(judge(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                      "a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})",
                  4),
            "f: header is damaged: a name is there twice: got 2 entries with 1 names");
}

TEST(Safetensors, RefusesHeadersLongerThanTheFile) {
  TemporaryFolder folder;
  EXPECT_EQ(messageOf(ArrayFile::open(folder.write("f", std::string(8, '\xff') + "{}"))),
            "f: is no .safetensors or .npz file, or is cut off: got a header of "
            "18446744073709551615 bytes in a file "
            "of 10");
}

TEST(Safetensors, WritesTheFormatByteForByte) {
  TemporaryFolder folder;
  float a[] = {1, -2, 0.5};
  double b[] = {3};
  std::string path = folder.path("w.safetensors");
  std::vector<ArrayToWrite> arrays = {{"layer.\"a\"", DType::F32, {3}, a},
                                      {"b", DType::F64, {}, b}};
  ASSERT_EQ(messageOf(writeSafetensors(path, arrays)), "success");
  std::string header =
      R"({"__metadata__":{"format":"pt"},"layer.\"a\"":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
      R"("b":{"dtype":"F64","shape":[],"data_offsets":[12,20]}})";
  header.append(-header.size() & 7, ' ');
  std::string want(1, char(header.size()));
  want += std::string(7, '\0') + header;
  want.append(reinterpret_cast<char *>(a), 12).append(reinterpret_cast<char *>(b), 8);
  auto got = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(got));
  EXPECT_EQ((*got)->getBuffer().str(), want);
  std::vector<ArrayInfo> infos(arrays.begin(), arrays.end());
  EXPECT_EQ(safetensorsSize(infos), want.size());
  // In pieces that end anywhere, it is the same file.
  llvm::StringRef body = llvm::StringRef(want).take_back(20);
  auto pieces = [&](llvm::raw_ostream &os) {
    os << body.take_front(5) << body.drop_front(5);
    return llvm::Error::success();
  };
  ASSERT_EQ(messageOf(streamSafetensors(folder.path("pieces"), infos, pieces)), "success");
  auto streamed = llvm::MemoryBuffer::getFile(folder.path("pieces"));
  ASSERT_TRUE(bool(streamed));
  EXPECT_EQ((*streamed)->getBuffer().str(), want);
  EXPECT_EQ(messageOf(ArrayFile::open(path)), "no error");
}

TEST(Safetensors, LeavesTheOldFileWhenItCannotWrite) {
  TemporaryFolder folder;
  std::string path = folder.write("w", "old");
  auto fail = [](llvm::raw_ostream &os) -> llvm::Error {
    os << "ab";
    return llvm::createStringError("rank 1: gone");
  };
  EXPECT_EQ(messageOf(streamSafetensors(path, {{"a", DType::F32, {1}}}, fail)), "rank 1: gone");
  EXPECT_EQ((*llvm::MemoryBuffer::getFile(path))->getBuffer(), "old");
  float a[] = {1};
  EXPECT_EQ(messageOf(writeSafetensors("/nowhere/w", {{"a", DType::F32, {1}, a}})),
            "/nowhere/w: cannot be written: No such file or directory");
}

} // namespace
