// SPDX-License-Identifier: Apache-2.0
// What is special about ranks as processes: finding each other, refusing each other, and dying.
#include "ir/base/Error.h"
#include "runtime/comm/LocalSocket.h"
#include "runtime/comm/Process.h"
#include "runtime/comm/Roll.h"
#include "tests/runtime/CommunicatorHarness.h"
#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace shardc {
namespace {

using Clock = std::chrono::steady_clock;

ProcessGroupOptions optionsOf(unsigned rank, unsigned size, const std::string &job) {
  ProcessGroupOptions options;
  options.rank = rank;
  options.size = size;
  options.name = job;
  options.plan = "a1";
  options.timeLimit = 20;
  return options;
}

/// Joins on a thread for each; "" or what it is told.
std::vector<std::string> join(const std::vector<ProcessGroupOptions> &all) {
  std::vector<std::string> told(all.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] {
      auto end = joinProcessGroup(all[i]);
      if (!end)
        llvm::handleAllErrors(end.takeError(), [&](const UserError &error) {
          told[i] = error.text().str();
          EXPECT_EQ(error.code(), Exit::BadInput);
          EXPECT_FALSE(error.hint().empty());
        });
    });
  for (std::thread &thread : threads)
    thread.join();
  return told;
}

/// Runs f(rank) in a process for each rank; f's result is its exit code. Returns what waitpid says of each.
template <typename F> std::vector<int> inProcesses(unsigned ranks, F f) {
  std::vector<pid_t> children;
  fflush(nullptr); // or children would say it again
  for (unsigned r = 0; r < ranks; ++r) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60); // whatever happens, it ends
      _exit(f(r));
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

/// For children: says what is wrong, by an exit code that no other place uses.
int mistake(int code, const std::string &what) {
  fprintf(stderr, "%s\n", what.c_str());
  return code;
}

TEST(CommunicatorProcess, ProcessesComputeThePlainSum) {
  const std::string job = uniqueJob();
  std::vector<Bytes> arrays;
  for (unsigned r = 0; r < 3; ++r)
    arrays.push_back(randomArray(DType::F32, 200000, r, 1)); // more than a staging area
  const Bytes wanted = plainSum(DType::F32, arrays);
  std::vector<int> statuses = inProcesses(3, [&](unsigned r) {
    auto end = joinProcessGroup(optionsOf(r, 3, job));
    if (!end)
      return mistake(2, llvm::toString(end.takeError()));
    for (int call = 0; call < 5; ++call) {
      Bytes data = arrays[r];
      if (!(*end)->allReduce(call % 3, data.data(), 200000, DType::F32) || data != wanted)
        return mistake(3, "sum, " + (*end)->cause());
    }
    return 0;
  });
  EXPECT_EQ(statuses, std::vector<int>(3, 0));
}

/// Ranks make calls until one of them ends in that way; the others see false soon, and why.
void expectEndIsSeen(unsigned victim, void (*end)()) {
  const std::string job = uniqueJob();
  std::vector<int> statuses = inProcesses(4, [&](unsigned r) {
    auto joined = joinProcessGroup(optionsOf(r, 4, job));
    if (!joined)
      return mistake(2, llvm::toString(joined.takeError()));
    float data[1000] = {};
    for (int call = 0; call < 5; ++call)
      if (!(*joined)->allReduce(1, data, 1000, DType::F32))
        return mistake(3, (*joined)->cause());
    if (r == victim)
      end();
    auto start = Clock::now();
    if ((*joined)->allReduce(1, data, 1000, DType::F32))
      return mistake(4, "a call without rank " + std::to_string(victim));
    if (Clock::now() - start > std::chrono::seconds(5))
      return mistake(5, "too late");
    if ((*joined)->cause() != "rank " + std::to_string(victim) + ": its process ended")
      return mistake(6, (*joined)->cause());
    return 0;
  });
  for (unsigned r = 0; r < 4; ++r)
    EXPECT_TRUE(r == victim || statuses[r] == 0) << "rank " << r << ": status " << statuses[r];
}

TEST(CommunicatorProcess, AKilledRankIsSeenByAll) {
  expectEndIsSeen(2, [] { raise(SIGKILL); });
  expectEndIsSeen(0, [] { raise(SIGKILL); });
}

TEST(CommunicatorProcess, ARankThatExitsWithoutAWordToo) {
  expectEndIsSeen(3, [] { _exit(0); });
}

TEST(CommunicatorProcess, AFaultIsToldToAllProcesses) {
  const std::string job = uniqueJob();
  std::vector<int> statuses = inProcesses(3, [&](unsigned r) {
    auto end = joinProcessGroup(optionsOf(r, 3, job));
    if (!end)
      return mistake(2, llvm::toString(end.takeError()));
    double number = 0;
    if (!(*end)->allReduce(0, &number, 1, DType::F64))
      return mistake(3, (*end)->cause());
    if (r == 1)
      (*end)->abort("l0/Gather: index 9 of 5"); // and ends at once: this stays the cause
    else if ((*end)->allReduce(0, &number, 1, DType::F64))
      return mistake(4, "a call without rank 1");
    return (*end)->cause() == "rank 1: l0/Gather: index 9 of 5" ? 0 : mistake(5, (*end)->cause());
  });
  EXPECT_EQ(statuses, std::vector<int>(3, 0));
}

TEST(CommunicatorProcess, OtherPlansAreRefusedByAll) {
  const std::string job = uniqueJob();
  std::vector<ProcessGroupOptions> all;
  for (unsigned r = 0; r < 5; ++r)
    all.push_back(optionsOf(r, 5, job));
  all[1].plan = all[4].plan = "b2";
  all[2].plan = "c3";
  EXPECT_EQ(join(all),
            std::vector<std::string>(5, "ranks: plans differ: got b2 at ranks 1 and 4, c3 at rank 2, "
                                        "wanted a1 as at rank 0"));
  for (ProcessGroupOptions &options : all)
    options.plan = "a1";
  EXPECT_EQ(join(all), std::vector<std::string>(5, "")); // the name is free again
}

TEST(CommunicatorProcess, OtherNumbersOfRanksAreRefusedByAll) {
  const std::string job = uniqueJob();
  EXPECT_EQ(join({optionsOf(0, 2, job), optionsOf(1, 3, job), optionsOf(2, 3, job)}),
            std::vector<std::string>(
                3, "ranks: numbers of ranks differ: got 3 at ranks 1 and 2, wanted 2 as at rank 0"));
}

TEST(CommunicatorProcess, MissingRanksAreNamed) {
  std::string job = uniqueJob();
  std::vector<ProcessGroupOptions> all = {optionsOf(0, 4, job), optionsOf(2, 4, job)};
  all[0].timeLimit = all[1].timeLimit = 0.3;
  EXPECT_EQ(join(all), std::vector<std::string>(2, "ranks: ranks 1 and 3 of 4 did not come within 0.3 s"));
  all[0].rank = 1;
  EXPECT_EQ(join(all), std::vector<std::string>(2, "ranks: rank 0 of 4 did not come within 0.3 s"));
}

TEST(CommunicatorProcess, LateRanksAreWaitedFor) {
  const std::string job = uniqueJob();
  std::vector<std::string> told;
  std::thread early([&] { told = join({optionsOf(1, 3, job), optionsOf(2, 3, job)}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(join({optionsOf(0, 3, job)}), std::vector<std::string>(1, ""));
  early.join();
  EXPECT_EQ(told, std::vector<std::string>(2, ""));
}

TEST(CommunicatorProcess, TwoOfOneRankAreRefused) {
  const std::string job = uniqueJob();
  std::vector<ProcessGroupOptions> all = {optionsOf(0, 3, job), optionsOf(1, 3, job), optionsOf(1, 3, job)};
  all[0].timeLimit = 1;
  EXPECT_EQ(join(all), std::vector<std::string>(3, "ranks: two processes call themselves rank 1"));
  all = {optionsOf(0, 2, job), optionsOf(0, 2, job)};
  all[0].timeLimit = 0.6;
  all[1].timeLimit = 0.2;
  std::vector<std::string> told = join(all);
  EXPECT_TRUE(llvm::is_contained(told, "ranks: two processes are rank 0 of one job: " + job) ||
              llvm::is_contained(told, "ranks: rank 1 of 2 did not come within 0.2 s"))
      << told[0] << ", " << told[1];
}

TEST(CommunicatorProcess, ARankThatDiesBeforeAllHaveComeIsNamed) {
  const std::string job = uniqueJob();
  std::thread goes([&] {
    Descriptor socket = connectTo(socketAddress(job), after(5));
    EXPECT_TRUE(sendPacket(socket, Hello::of(optionsOf(1, 3, job)).packet()));
  });
  ProcessGroupOptions host = optionsOf(0, 3, job);
  host.timeLimit = 1;
  EXPECT_EQ(join({host})[0], "ranks: rank 1 has ended before all had come");
  goes.join();
}

TEST(CommunicatorProcess, AStrangerIsToldSo) {
  const std::string job = uniqueJob();
  std::vector<std::string> told;
  std::thread host([&] { told = join({optionsOf(0, 2, job)}); });
  Descriptor stranger = connectTo(socketAddress(job), after(20));
  EXPECT_TRUE(sendPacket(stranger, "GET / HTTP/1.1"));
  const char *wanted = "ranks: a process of another version of shardc calls itself one of this group";
  EXPECT_EQ(join({optionsOf(1, 2, job)})[0], wanted);
  EXPECT_TRUE(llvm::StringRef(receivePacket(stranger, after(20)).value_or("")).starts_with(wanted));
  host.join();
  EXPECT_EQ(told[0], wanted);
}

TEST(CommunicatorProcess, HellosAreChecked) {
  ProcessGroupOptions options = optionsOf(3, 5, "job");
  options.plan = std::string(256, 'x');
  std::string packet = Hello::of(options).packet();
  auto hello = Hello::parse(packet);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->rank, 3u);
  EXPECT_EQ(hello->size, 5u);
  EXPECT_EQ(hello->stagingBytes, options.stagingBytes);
  EXPECT_EQ(hello->plan, options.plan);
  EXPECT_FALSE(Hello::parse(packet + "x"));
  EXPECT_FALSE(Hello::parse(""));
  EXPECT_FALSE(Hello::parse(packet.substr(0, 20)));
  EXPECT_FALSE(Hello::parse("S" + packet.substr(1)));
  std::string outside = packet;
  outside[8] = 5; // rank 5 of 5
  EXPECT_FALSE(Hello::parse(outside));
  outside[8] = 3;
  outside[14] = 2; // of too many
  EXPECT_FALSE(Hello::parse(outside));
}

} // namespace
} // namespace shardc
