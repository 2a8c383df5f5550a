// SPDX-License-Identifier: Apache-2.0
// Weights in files beside the model: mapped where they lie, and nothing outside of the model's
// folder is touched.
#include "OnnxBuilder.h"
#include "tests/runtime/TestFiles.h"
#include "llvm/Support/Endian.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace shardc;
using namespace shardc::test;

namespace {

using Entries = std::initializer_list<std::pair<const char *, const char *>>;

/// A folder with a model whose `w` (f32, 2x3) lies where `entries` say.
struct ExternalModel {
  TemporaryFolder folder;
  std::string path;

  explicit ExternalModel(Entries entries) {
    OnnxBuilder b;
    b.input("x");
    addExternal(b.weight("w", {2, 3}, 0), entries);
    b.node("Add", {"x", "w"}, {"y"});
    b.output("y");
    path = folder.write("m.onnx", b.bytes());
  }
  llvm::Expected<std::unique_ptr<OnnxModel>> open() const { return OnnxModel::open(path); }
  /// Without "m.onnx: initializer 'w': external data ".
  std::string error() const {
    std::string text = messageOf(open());
    llvm::StringRef rest = text;
    rest.consume_front("m.onnx: initializer 'w': external data ");
    return rest.str();
  }
};

std::string floats(int count) {
  std::string bytes(count * 4, '\0');
  for (int i = 0; i < count; ++i)
    llvm::support::endian::write<float>(&bytes[i * 4], float(i), llvm::endianness::little);
  return bytes;
}

TEST(ExternalData, IsMappedWhereItLies) {
  ExternalModel m(
      {{"location", "sub/w.bin"}, {"offset", "8"}, {"length", "24"}, {"checksum", "0"}});
  ASSERT_EQ(mkdir(m.folder.path("sub").c_str(), 0700), 0);
  std::string file = m.folder.write("sub/w.bin", floats(8));
  auto model = m.open();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  const TensorSource &source = (*model)->source(*(*model)->initializer("w"));
  EXPECT_EQ(source.state, TensorSource::State::External);
  EXPECT_EQ(source.file, file);
  EXPECT_EQ(source.offset, 8u);
  EXPECT_EQ(source.length, 24u);
  EXPECT_EQ(llvm::StringRef(source.data, 24), llvm::StringRef(floats(8)).drop_front(8));
  EXPECT_TRUE((*model)->notes().empty());
}

TEST(ExternalData, OffsetAndLengthAreOptional) {
  ExternalModel m({{"location", "./w.bin"}});
  m.folder.write("w.bin", floats(6));
  auto model = m.open();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  EXPECT_EQ((*model)->source(*(*model)->initializer("w")).length, 24u);
}

TEST(ExternalData, AMissingFileIsANote) {
  ExternalModel m({{"location", "no/w.bin"}, {"offset", "64"}, {"length", "24"}});
  auto model = m.open();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  const TensorSource &source = (*model)->source(*(*model)->initializer("w"));
  EXPECT_EQ(source.state, TensorSource::State::Absent);
  EXPECT_EQ(source.file, m.folder.path("no/w.bin"));
  EXPECT_EQ(source.offset, 64u);
  EXPECT_EQ(source.data, nullptr);
  ASSERT_EQ((*model)->notes().size(), 1u);
  EXPECT_EQ((*model)->notes()[0], m.path + ": external data 'w.bin' is not there: 1 tensor has a "
                                           "shape but no values");
}

TEST(ExternalData, MayLieInAnotherFolderOnDemand) {
  ExternalModel m({{"location", "w.bin"}});
  TemporaryFolder root;
  root.write("w.bin", floats(6));
  auto model = OnnxModel::open(m.path, {root.path("")});
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  EXPECT_EQ((*model)->source(*(*model)->initializer("w")).state, TensorSource::State::External);
}

TEST(ExternalData, NeverLeavesTheFolder) {
  auto error = [](const char *location) {
    ExternalModel m({{"location", location}});
    return m.error();
  };
  EXPECT_EQ(error("../w.bin"), "leaves the model's folder: got '../w.bin', wanted a path below it");
  EXPECT_EQ(error("a/../../w.bin"),
            "leaves the model's folder: got 'a/../../w.bin', wanted a path below it");
  EXPECT_EQ(error("/dev/zero"),
            "has an absolute path: got '/dev/zero', wanted a path below the model's folder");
  EXPECT_EQ(error(""), "has no location: got '', wanted a path below the model's folder");
  EXPECT_EQ(error("."), "is a folder: got '.', wanted a regular file");
  EXPECT_EQ(error("a/"), "is a folder: got 'a/', wanted a regular file");
}

TEST(ExternalData, FollowsNoLink) {
  ExternalModel m({{"location", "link.bin"}});
  m.folder.write("w.bin", floats(6));
  ASSERT_EQ(symlink("w.bin", m.folder.path("link.bin").c_str()), 0);
  EXPECT_EQ(m.error(), "is or goes through a symbolic link: got 'link.bin', wanted a regular file "
                       "below the model's folder");

  EXPECT_NE(llvm::toString(m.open().takeError()).find("hint: copy the model and its data"),
            std::string::npos);

  ExternalModel n({{"location", "linked/w.bin"}});
  n.folder.write("w.bin", floats(6));
  ASSERT_EQ(symlink(".", n.folder.path("linked").c_str()), 0);
  EXPECT_EQ(n.error(), "is or goes through a symbolic link: got 'linked/w.bin', wanted a regular "
                       "file below the model's folder");
  // A link that leads nowhere is no missing file.
  ExternalModel o({{"location", "link.bin"}});
  ASSERT_EQ(symlink("nowhere", o.folder.path("link.bin").c_str()), 0);
  EXPECT_EQ(o.error(), m.error());
}

TEST(ExternalData, IsARegularFile) {
  ExternalModel m({{"location", "sub"}});
  ASSERT_EQ(mkdir(m.folder.path("sub").c_str(), 0700), 0);
  EXPECT_EQ(m.error(), "is not a file: got 'sub', wanted a regular file");
  ExternalModel n({{"location", "pipe"}}); // opening it for reading would wait for a writer
  ASSERT_EQ(mkfifo(n.folder.path("pipe").c_str(), 0700), 0);
  EXPECT_EQ(n.error(), "is not a file: got 'pipe', wanted a regular file");
  ExternalModel o({{"location", "w.bin/x"}});
  o.folder.write("w.bin", floats(6));
  EXPECT_EQ(o.error(), "'w.bin/x' cannot be opened: Not a directory");
}

TEST(ExternalData, FitsTheFileAndTheTensor) {
  auto error = [](Entries entries) {
    ExternalModel m(entries);
    m.folder.write("w.bin", floats(8));
    return m.error();
  };
  const char *hint = " for f32 2x3";
  EXPECT_EQ(error({{"location", "w.bin"}, {"length", "20"}}),
            std::string("has the wrong length: got 20 bytes, wanted 24") + hint);
  EXPECT_EQ(error({{"location", "w.bin"}, {"length", "28"}}),
            std::string("has the wrong length: got 28 bytes, wanted 24") + hint);
  EXPECT_EQ(error({{"location", "w.bin"}, {"offset", "8"}}), "no error");
  EXPECT_EQ(error({{"location", "w.bin"}, {"offset", "9"}}),
            "does not fit the file 'w.bin': got a file of 32 bytes, wanted 24 at offset 9");
  EXPECT_EQ(error({{"location", "w.bin"}, {"offset", "18446744073709551600"}}),
            "does not fit the file 'w.bin': got a file of 32 bytes, wanted 24 at offset "
            "18446744073709551600");
  for (const char *bad : {"-1", "+1", "0x8", "4x", "", " 8", "18446744073709551616"})
    EXPECT_EQ(error({{"location", "w.bin"}, {"offset", bad}}),
              std::string("offset: got '") + bad + "', wanted a decimal number of bytes");
}

TEST(ExternalData, KnowsItsKeys) {
  auto error = [](Entries entries) { return ExternalModel(entries).error(); };
  EXPECT_EQ(error({{"location", "w.bin"}, {"mode", "w"}}),
            "has an unknown key: got 'mode', wanted location, offset, length or checksum");
  EXPECT_EQ(error({{"location", "w.bin"}, {"location", "v.bin"}}), "names its location twice");
  EXPECT_EQ(error({{"location", "w.bin"}, {"offset", "0"}, {"offset", "4"}}),
            "gives its offset twice");
}

} // namespace
