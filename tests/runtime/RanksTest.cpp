// SPDX-License-Identifier: Apache-2.0
// One rank fails, all end, and the first cause is what is told.
#include "runtime/Ranks.h"
#include "TestFiles.h"
#include "runtime/comm/Local.h"
#include <atomic>
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

TEST(Ranks, RunOnThreadsOfTheirOwn) {
  auto group = makeLocalGroup(5);
  double sum = 0;
  auto body = [&](Communicator &c) -> llvm::Error {
    double rank = c.rank();
    if (!c.allReduce(0, &rank, 1, DType::F64)) // nobody would come if they ran one after another
      return groupError(c);
    if (c.rank() == 0)
      sum = rank;
    return waitForAll(c);
  };
  EXPECT_EQ(messageOf(runRanks(group, body)), "success");
  EXPECT_EQ(sum, 0 + 1 + 2 + 3 + 4);
}

TEST(Ranks, EndWithTheFirstCause) {
  for (unsigned bad = 0; bad < 3; ++bad) {
    auto group = makeLocalGroup(3);
    std::vector<std::string> heard(3);
    auto body = [&](Communicator &c) -> llvm::Error {
      if (c.rank() == bad)
        return userError("disk: full", "free some space", Exit::Fault);
      llvm::Error error = waitForAll(c); // for one that never comes
      heard[c.rank()] = llvm::toString(std::move(error));
      return userError("a consequence");
    };
    Exit code = Exit::Done;
    std::string text, hint;
    llvm::handleAllErrors(runRanks(group, body), [&](const UserError &error) {
      code = error.code(), text = error.text(), hint = error.hint();
    });
    EXPECT_EQ(code, Exit::Fault);
    EXPECT_EQ(text, "disk: full");
    EXPECT_EQ(hint, "free some space");
    for (unsigned r = 0; r < 3; ++r)
      EXPECT_EQ(heard[r], r == bad ? "" : "rank " + std::to_string(bad) + ": disk: full\nhint: free some space");
  }
}

// The executor has told the group already, with its rank; the error that it returns may lack it.
TEST(Ranks, AreNamedWhereAKernelFails) {
  auto group = makeLocalGroup(2);
  auto body = [&](Communicator &c) -> llvm::Error {
    if (c.rank() == 0)
      return waitForAll(c);
    c.abort("rank 1: l0/MatMul: broken");
    return userError("l0/MatMul: broken");
  };
  EXPECT_EQ(messageOf(runRanks(group, body)), "rank 1: l0/MatMul: broken");
}

TEST(Ranks, OfOnePlanOnly) {
  for (unsigned other = 0; other < 3; ++other) {
    auto group = makeLocalGroup(3);
    std::atomic<int> passed = 0;
    auto body = [&](Communicator &c) -> llvm::Error {
      if (llvm::Error error = comparePlans(c, c.rank() == other ? "bbbb" : "aaaa"))
        return error;
      ++passed;
      return llvm::Error::success();
    };
    std::string message = messageOf(runRanks(group, body));
    if (other == 0) // then the others differ from it
      EXPECT_EQ(message, "plan: differs from that of rank 0: got hash aaaa, wanted bbbb");
    else
      EXPECT_EQ(message, "plan: differs from that of rank 0: got hash bbbb, wanted aaaa");
    EXPECT_EQ(passed, 0);
  }
  auto group = makeLocalGroup(3);
  EXPECT_EQ(messageOf(runRanks(group, [](Communicator &c) { return comparePlans(c, "aaaa"); })), "success");
}

TEST(Ranks, HaveOneWish) {
  for (unsigned who : {0u, 2u, 7u}) {
    auto group = makeLocalGroup(3);
    std::atomic<int> stopped = 0;
    auto body = [&](Communicator &c) -> llvm::Error {
      auto stop = anyRank(c, c.rank() == who);
      if (!stop)
        return stop.takeError();
      stopped += *stop;
      return llvm::Error::success();
    };
    EXPECT_EQ(messageOf(runRanks(group, body)), "success");
    EXPECT_EQ(stopped, who < 3 ? 3 : 0);
  }
}

} // namespace
