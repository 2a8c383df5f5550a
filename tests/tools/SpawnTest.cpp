// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: what they are told, what becomes of their ends, and that none is left. The processes are shells.
#include "tools/train/Spawn.h"
#include "runtime/comm/Local.h"
#include "tools/train/LastResort.h"
#include "llvm/Support/MemoryBuffer.h"
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>

namespace shardc {
namespace {

/// The exit code of so many shells that run `script`.
int spawn(unsigned ranks, const std::string &script, double patience = 20) {
  const char *arguments[] = {"sh", "-c", script.c_str()};
  SpawnOptions options;
  options.program = "/bin/sh";
  options.arguments = arguments;
  options.ranks = ranks;
  options.patience = patience;
  return llvm::cantFail(spawnRanks(options));
}

TEST(Spawn, TellsEachItsPlace) {
  std::string folder = testing::TempDir() + "shardc-spawn-" + std::to_string(getpid());
  setenv("WORLD_SIZE", "77", 1); // left over
  EXPECT_EQ(spawn(3, "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $TORCHELASTIC_RUN_ID > " + folder + ".$RANK"), 0);
  unsetenv("WORLD_SIZE");
  for (int rank = 0; rank < 3; ++rank) {
    std::string path = folder + "." + std::to_string(rank), r = std::to_string(rank);
    auto said = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(said));
    EXPECT_EQ((*said)->getBuffer().str(), r + " " + r + " 3 3 shardc-" + std::to_string(getpid()) + "\n");
    unlink(path.c_str());
  }
}

TEST(Spawn, ReturnsTheWorstEnd) {
  EXPECT_EQ(spawn(3, "exit 0"), 0);
  EXPECT_EQ(spawn(3, "[ $RANK = 1 ] && exit 130 || exit 0"), 130);
  EXPECT_EQ(spawn(3, "[ $RANK = 1 ] && exit 1 || exit 130"), 1);
  EXPECT_EQ(spawn(3, "[ $RANK = 1 ] && exit 3 || exit 1"), 3);
  EXPECT_EQ(spawn(3, "[ $RANK = 1 ] && exit 4 || exit 3"), 4);
  EXPECT_EQ(spawn(2, "[ $RANK = 1 ] && kill -9 $$ || exit 1"), 4);
}

TEST(Spawn, EndsThoseThatHang) {
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(spawn(3, "trap '' INT TERM; [ $RANK = 1 ] && exit 4; exec sleep 100", /*patience=*/0.5), 4);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

/// "SigBlk" of the rank, with `stop`: which signals of 64, the first lowest. (Other shells than bash clear masks.)
uint64_t signalsOfRank(const std::string &field, const std::atomic<bool> *stop) {
  const std::string path = testing::TempDir() + "shardc-signals-" + std::to_string(getpid());
  const std::string script = "sleep 0.3; grep " + field + ": /proc/$$/status > " + path;
  const char *arguments[] = {"bash", "-c", script.c_str()};
  EXPECT_EQ(llvm::cantFail(spawnRanks({"/bin/bash", arguments, /*ranks=*/1, /*patience=*/20, stop})), 0);
  auto said = llvm::MemoryBuffer::getFile(path);
  unlink(path.c_str());
  uint64_t bits = 0;
  EXPECT_TRUE(said && !(*said)->getBuffer().split(':').second.trim().getAsInteger(16, bits));
  return bits;
}
uint64_t bit(int signal) { return uint64_t(1) << (signal - 1); }

// One that came while a rank starts would end it, by exit code 4, with the others waiting.
TEST(Spawn, RanksAreAskedToStopWhenTheyCanHear) {
  const uint64_t stops = bit(SIGINT) | bit(SIGTERM);
  EXPECT_EQ(signalsOfRank("SigBlk", nullptr) & stops, stops);
  EXPECT_EQ(signalsOfRank("ShdPnd", nullptr) & stops, 0u);
  const std::atomic<bool> asked = true;
  EXPECT_EQ(signalsOfRank("ShdPnd", &asked) & stops, bit(SIGINT));
}

TEST(LastResort, EndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto hang = [] {
    auto group = makeLocalGroup(2);
    LastResort lastResort(*group[0], 0.5);
    group[1]->abort("the device is gone");
    std::this_thread::sleep_for(std::chrono::seconds(60));
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(4), "shardc: error: rank 1: the device is gone");
}

TEST(LastResort, LeavesAloneWhatEnds) {
  auto group = makeLocalGroup(2);
  {
    LastResort lastResort(*group[0], 0.3);
    group[1]->abort("x");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
}

} // namespace
} // namespace shardc
