// SPDX-License-Identifier: Apache-2.0
// How a group ends: on a fault of one rank, or in order.
#include "tests/runtime/CommunicatorHarness.h"
#include <atomic>
#include <chrono>
#include <random>

namespace shardc {
namespace {

using CommunicatorAbortTest = GroupTest;
SHARDC_EACH_GROUP(CommunicatorAbortTest);

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool anyCall(Communicator &end, unsigned channel, unsigned kind) {
  std::vector<double> whole(8 * end.size()), slice(8);
  switch (kind % 4) {
  case 0:
    return end.allGather(channel, slice.data(), whole.data(), 8, DType::F64);
  case 1:
    return end.reduceScatter(channel, whole.data(), slice.data(), 8, DType::F64);
  case 2:
    return end.allReduce(channel, whole.data(), 8, DType::F64);
  }
  return end.broadcast(channel, whole.data(), 64, 0);
}

TEST_P(CommunicatorAbortTest, WakesAllThatWaitAndKeepsTheCause) {
  std::atomic<unsigned> waiting = 0, woken = 0;
  Clock::time_point start;
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    if (r == ranks - 1) { // all others wait for it, on every channel
      while (waiting != (ranks - 1) * Communicator::kChannels)
        std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      start = Clock::now();
      end.abort("l0/MatMul: index out of range");
      return;
    }
    std::vector<std::thread> threads;
    for (unsigned channel = 0; channel < Communicator::kChannels; ++channel)
      threads.emplace_back([&, channel] {
        ++waiting;
        EXPECT_FALSE(anyCall(end, channel, channel));
        ++woken;
      });
    for (std::thread &thread : threads)
      thread.join();
  });
  EXPECT_LT(secondsSince(start), 1);
  EXPECT_EQ(woken, waiting);
  for (auto &end : ends) {
    EXPECT_TRUE(end->aborted());
    EXPECT_EQ(end->cause(), "rank " + std::to_string(ranks - 1) + ": l0/MatMul: index out of range");
    for (unsigned kind = 0; kind < 4; ++kind)
      EXPECT_FALSE(anyCall(*end, kind, kind)); // without waiting for anyone
  }
}

TEST_P(CommunicatorAbortTest, TheFirstCauseStays) {
  ends[0]->abort("first");
  ends[ranks - 1]->abort("second");
  ends[0]->abort("third");
  for (auto &end : ends)
    EXPECT_EQ(end->cause(), "rank 0: first");
}

TEST_P(CommunicatorAbortTest, AllSeeOneCauseWhenManyFailAtOnce) {
  std::vector<std::string> causes(ranks);
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    std::thread other([&] { end.abort("fault a"); });
    end.abort("fault b");
    causes[r] = end.cause();
    other.join();
  });
  for (unsigned r = 0; r < ranks; ++r)
    EXPECT_EQ(causes[r], causes[0]);
  EXPECT_TRUE(causes[0].starts_with("rank ") && causes[0].find(": fault ") != std::string::npos) << causes[0];
}

TEST_P(CommunicatorAbortTest, CausesMayBeEmptyOrLong) {
  if (ranks > 1) {
    Ends others = std::get<0>(GetParam()).make(ranks);
    others[1]->abort("");
    EXPECT_EQ(others[0]->cause(), "rank 1: stopped");
    EXPECT_TRUE(others[0]->aborted());
  }
  ends[0]->abort(std::string(5000, 'x'));
  std::string cause = ends[ranks - 1]->cause();
  EXPECT_TRUE(cause.starts_with("rank 0: xxx"));
  EXPECT_GT(cause.size(), 500u);
}

// When a call fails its arrays may be freed at once, though others were just reading them: sanitizers would
// see it. The fault comes at any time: with more ranks than cores, some wait for others that still read.
TEST_P(CommunicatorAbortTest, ArraysMayGoAfterAFailedCall) {
  std::mt19937 random(ranks);
  for (unsigned round = 0; round < 12; ++round) {
    Ends group = std::get<0>(GetParam()).make(ranks);
    std::thread fault([&, delay = random() % 5000] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      group[round % ranks]->abort("fault");
    });
    onEachRank(group, [&](Communicator &end, unsigned r) {
      for (;;) {
        auto data = std::make_unique<std::vector<float>>(20000 * ranks, 1.0f);
        if (!end.allReduce(1, data->data(), data->size(), DType::F32))
          break;
        EXPECT_EQ(data->back(), float(ranks));
      }
    });
    fault.join();
  }
}

TEST_P(CommunicatorAbortTest, LeavingInOrderTripsNobody) {
  std::atomic<unsigned> fine = 0;
  onEachRank(ends, [&](Communicator &, unsigned r) {
    std::vector<int64_t> data(1000, r);
    for (int call = 0; call < 20; ++call)
      fine += ends[r]->allReduce(call % 3, data.data(), data.size(), DType::I64);
    EXPECT_EQ(ends[r]->cause(), "");
    ends[r].reset(); // others may still be on their way out of the last call
  });
  EXPECT_EQ(fine, 20 * ranks);
}

TEST_P(CommunicatorAbortTest, WhoStillNeedsARankThatLeftIsTold) {
  if (ranks == 1)
    return;
  std::atomic<unsigned> told = 0;
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    EXPECT_TRUE(anyCall(end, 0, 2));
    if (r == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ends[1].reset();
      return;
    }
    EXPECT_FALSE(anyCall(end, 0, r));
    EXPECT_EQ(end.cause(), "rank 1: left before the others were done");
    ++told;
  });
  EXPECT_EQ(told, ranks - 1);
}

} // namespace
} // namespace shardc
