// SPDX-License-Identifier: Apache-2.0
#include "TestFiles.h"
#include "runtime/Npy.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

std::string npy(int version, llvm::StringRef dict) {
  std::string text = "\x93NUMPY";
  text += {char(version), '\0', char(dict.size())};
  text.append(version == 1 ? 1 : 3, '\0');
  return text + dict.str();
}

/// What the header says: "<f4 2x3", or the error.
std::string parse(int version, llvm::StringRef dict) {
  std::string header = npy(version, dict);
  header.append(header.size() < kNpyPrelude ? kNpyPrelude - header.size() : 0, ' ');
  auto size = npyHeaderSize(header, "a");
  if (!size)
    return messageOf(size.takeError());
  FileArray array;
  if (llvm::Error error = parseNpyHeader(llvm::StringRef(header).take_front(*size), "a", array))
    return messageOf(std::move(error));
  return array.typeName + " " + formatDims(array.dims) + (array.dtype ? "" : " unusable");
}

TEST(Npy, ReadsAllVersionsAndSpellings) {
  for (int version : {1, 2, 3})
    EXPECT_EQ(parse(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n"),
              "<f4 2x3");
  EXPECT_EQ(parse(1, "{'shape': (5L,), 'fortran_order': False, 'descr': \"<i8\"}\n"), "<i8 5");
  EXPECT_EQ(parse(1, "{'descr': '|b1', 'fortran_order': False, 'shape': ()}\n"), "|b1 scalar");
  EXPECT_EQ(parse(1, "{'descr': [('a]', '<f4'), ('b', [('c', '<i4')])], 'fortran_order': False, "
                     "'shape': (1,)}"),
            "structured 1 unusable");
}

TEST(Npy, RefusesDamage) {
  EXPECT_EQ(parse(4, "{}"), "a: unknown .npy version: got 4, wanted 1 to 3");
  EXPECT_EQ(parse(1, "(3, 4)"), "a: .npy header is damaged: wanted a dict");
  EXPECT_EQ(parse(1, "{'descr': '<f4', 'shape': (2,)}"),
            "a: .npy header is damaged: wanted each of descr, fortran_order and shape once");
  EXPECT_EQ(parse(1, "{'descr': '<f4', 'descr': '<f4'}"),
            "a: .npy header is damaged: wanted each of descr, fortran_order and shape once");
  EXPECT_EQ(parse(1, "{'shape': (-1,)}"),
            "a: .npy header is damaged: wanted a tuple of integers after 'shape'");
  EXPECT_EQ(parse(1, "{'shape': (99999999999999999999,)}"),
            "a: .npy header is damaged: wanted a tuple of integers after 'shape'");
  EXPECT_EQ(parse(1, "{'shape': (4294967296, 4294967296), 'descr': '<f4', 'fortran_order': False}"),
            "a: shape is too large: got 4294967296x4294967296");
  EXPECT_EQ(parse(1, "{'descr': [['"), "a: .npy header is damaged: wanted a dtype after 'descr'");
  EXPECT_EQ(messageOf(npyHeaderSize("\x93NUMPY\2\0\xff\xff\xff\x7f", "a")),
            "a: is no .npy array: wrong first bytes");
  EXPECT_EQ(messageOf(npyHeaderSize(llvm::StringRef("\x93NUMPY\2\0\xff\xff\xff\x7f", 12), "a")),
            "a: .npy header is damaged: got 2147483659 bytes, wanted at most 1 MiB");
}

TEST(Npz, RefusesWhatOnlyBeginsLikeAZipFile) {
  TemporaryFolder folder;
  EXPECT_EQ(messageOf(ArrayFile::open(folder.write("a.npz", "PK\3\4 and no more"))),
            "a.npz: is no .npz file, or is cut off: Not a zip archive");
}

} // namespace
