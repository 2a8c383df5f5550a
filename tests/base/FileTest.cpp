// SPDX-License-Identifier: Apache-2.0
#include "ir/base/File.h"
#include "ir/base/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace shardc {
namespace {

class FileTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(sys::fs::createUniqueDirectory("shardc-file", folder_)); }
  void TearDown() override { sys::fs::remove_directories(folder_); }
  std::string at(StringRef name) const { return (folder_ + "/" + name).str(); }
  std::string read(StringRef name) const {
    auto buffer = MemoryBuffer::getFile(at(name));
    return buffer ? (*buffer)->getBuffer().str() : "<none>";
  }
  unsigned files() const {
    std::error_code error;
    unsigned count = 0;
    for (sys::fs::directory_iterator it(folder_, error), end; it != end; it.increment(error))
      ++count;
    return count;
  }
  SmallString<128> folder_;
};

Error write(StringRef path, StringRef text) {
  return writeFileAtomically(path, [&](raw_ostream &os) {
    os << text;
    return Error::success();
  });
}

TEST_F(FileTest, ReplacesWhatWasThere) {
  ASSERT_EQ(toString(write(at("a"), "one")), "");
  EXPECT_EQ(read("a"), "one");
  ASSERT_EQ(toString(write(at("a"), "2")), "");
  EXPECT_EQ(read("a"), "2");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, ErrorOfTheWriterKeepsTheOldFile) {
  ASSERT_EQ(toString(write(at("a"), "old")), "");
  Error error = writeFileAtomically(at("a"), [](raw_ostream &os) {
    os << "half";
    return userError("stopped");
  });
  EXPECT_EQ(toString(std::move(error)), "stopped");
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, FollowsALink) {
  ASSERT_EQ(toString(write(at("real"), "1")), "");
  ASSERT_FALSE(sys::fs::create_link("real", at("link")));
  ASSERT_EQ(toString(write(at("link"), "2")), "");
  EXPECT_EQ(read("real"), "2");
  EXPECT_TRUE(sys::fs::is_symlink_file(at("link")));
}

TEST_F(FileTest, MissingFolder) {
  std::string path = at("no/a");
  EXPECT_EQ(toString(write(path, "x")),
            path + ": cannot be written: No such file or directory\nhint: create the folder " +
                at("no") + " first");
  EXPECT_EQ(files(), 0u);
}

TEST_F(FileTest, FolderInsteadOfFile) {
  EXPECT_EQ(
      toString(write(folder_, "x")),
      (folder_ + ": cannot be written: Is a directory\nhint: choose a path that you may write to")
          .str());
}

TEST_F(FileTest, DeviceThatIsFull) {
  EXPECT_EQ(toString(write("/dev/full", "x")),
            "/dev/full: cannot be written: No space left on device\nhint: free some "
            "space, or choose a path on another disk");
}

// A limit on the size of files stands for a full disk: the write fails half way, and no part of the
// file stays.
TEST_F(FileTest, DiskFullHalfWay) {
  ASSERT_EQ(toString(write(at("a"), "old")), "");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {100000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Error error = write(at("a"), std::string(300000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(toString(std::move(error)),
            at("a") +
                ": cannot be written: File too large\nhint: raise the limit on the size of files "
                "(ulimit -f), or choose a path on another disk");
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(files(), 1u);
}

// Nobody can clean up after SIGKILL: the file that was being written must have had no name.
TEST_F(FileTest, KilledHalfWay) {
  int fd = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0)
    GTEST_SKIP() << "the file system of " << folder_.c_str() << " knows no files without names";
  close(fd);
  ASSERT_EQ(toString(write(at("a"), "old")), "");
  pid_t child = fork();
  if (child == 0) {
    consumeError(writeFileAtomically(at("a"), [](raw_ostream &os) {
      os << std::string(300000, 'x');
      os.flush();
      raise(SIGKILL);
      return Error::success();
    }));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, NewFilesHaveThePermissionsOfTheMask) {
  mode_t before = umask(027);
  ASSERT_EQ(toString(write(at("a"), "x")), "");
  umask(before);
  EXPECT_EQ(cantFail(errorOrToExpected(sys::fs::getPermissions(at("a")))), sys::fs::perms(0640));
}

TEST_F(FileTest, IsReadWhole) {
  auto readOf = [&](StringRef path, uint64_t most) {
    auto buffer = readFile(path, most);
    return buffer ? (*buffer)->getBuffer().str() : "error: " + StringRef(toString(buffer.takeError())).split("\nhint:").first.str();
  };
  for (size_t size : {size_t(0), size_t(5), size_t(1) << 16, (size_t(1) << 16) + 1, size_t(1) << 20}) {
    std::string text(size, 'x');
    ASSERT_FALSE(bool(write(at("a"), text)));
    EXPECT_EQ(readOf(at("a"), size), text);
    if (size) {
      EXPECT_EQ(readOf(at("a"), size - 1), "error: " + at("a") + ": too large: got " + std::to_string(size) +
                                               " bytes, wanted at most " + std::to_string(size - 1));
    }
    EXPECT_EQ(*cantFail(readFile(at("a"), size))->getBufferEnd(), '\0');
  }
  EXPECT_EQ(readOf(at("none"), 9), "error: " + at("none") + ": cannot be read: No such file or directory");
  EXPECT_EQ(readOf(folder_, 9), ("error: " + folder_ + ": cannot be read: Is a directory").str());
  EXPECT_EQ(readOf("/dev/null", 9), "");
  EXPECT_EQ(readOf("/dev/zero", uint64_t(1) << 40), "error: /dev/zero: too large: got no end, wanted at most 1048576 bytes");
}

TEST_F(FileTest, PipesAreReadToTheirEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "some bytes", 10), 10);
  close(ends[1]);
  EXPECT_EQ(cantFail(readFile("/dev/fd/" + std::to_string(ends[0]), 10))->getBuffer(), "some bytes");
  close(ends[0]);
}

} // namespace
} // namespace shardc
