// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Launcher.h"
#include "ir/base/Error.h"
#include <gtest/gtest.h>

namespace shardc {
namespace {

using Environment = std::vector<std::pair<const char *, const char *>>;

/// "", "rank/size", or the error without its hint.
std::string launch(const Environment &environment, std::string *rendezvous = nullptr) {
  auto read = [&](const char *name) -> const char * {
    for (auto [key, value] : environment)
      if (llvm::StringRef(key) == name)
        return value;
    return nullptr;
  };
  auto launch = readLaunch(read);
  if (!launch) {
    std::string text;
    llvm::handleAllErrors(launch.takeError(), [&](const UserError &error) {
      text = error.text().str();
      EXPECT_EQ(error.code(), Exit::BadInput);
      EXPECT_FALSE(error.hint().empty());
    });
    return text;
  }
  if (!*launch)
    return "";
  if (rendezvous)
    *rendezvous = (*launch)->rendezvous;
  return std::to_string((*launch)->rank) + "/" + std::to_string((*launch)->size);
}

TEST(Launcher, EachTellsAPlace) {
  EXPECT_EQ(launch({}), "");
  EXPECT_EQ(launch({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}}),
            "2/4");
  EXPECT_EQ(launch({{"OMPI_COMM_WORLD_RANK", "0"},
                    {"OMPI_COMM_WORLD_SIZE", "3"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}}),
            "0/3");
  EXPECT_EQ(launch({{"PMI_RANK", "6"}, {"PMI_SIZE", "7"}}), "6/7");
  EXPECT_EQ(launch({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}}),
            "1/2");
}

TEST(Launcher, OneProcessIsNoLaunch) {
  EXPECT_EQ(launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "");
  EXPECT_EQ(launch({{"RANK", "5"}}), "");         // of nobody knows how many
  EXPECT_EQ(launch({{"SLURM_PROCID", "0"}}), ""); // in a batch script
}

TEST(Launcher, TheInnermostCounts) {
  EXPECT_EQ(
      launch({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}}),
      "1/2");
  EXPECT_EQ(
      launch({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}), "");
}

TEST(Launcher, BadValues) {
  EXPECT_EQ(launch({{"RANK", "0"}, {"WORLD_SIZE", "two"}}),
            "environment: WORLD_SIZE: got \"two\", wanted a number of ranks");
  EXPECT_EQ(launch({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "environment: WORLD_SIZE: got \"0\", wanted a number of ranks");
  EXPECT_EQ(launch({{"RANK", "0"}, {"WORLD_SIZE", ""}}),
            "environment: WORLD_SIZE: got \"\", wanted a number of ranks");
  EXPECT_EQ(launch({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), "environment: RANK: got \"-1\", wanted a rank");
  EXPECT_EQ(launch({{"RANK", "99999999999"}, {"WORLD_SIZE", "2"}}),
            "environment: RANK: got \"99999999999\", wanted a rank");
  EXPECT_EQ(launch({{"WORLD_SIZE", "2"}}), "environment: WORLD_SIZE is 2, but RANK is not set");
  EXPECT_EQ(launch({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}),
            "environment: PMI_RANK: got 4, wanted a rank below 4 as in PMI_SIZE");
}

TEST(Launcher, OneHostOnly) {
  EXPECT_EQ(launch({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}}),
            "environment: LOCAL_WORLD_SIZE: more than one host is not built yet: got 2 ranks on this host, "
            "wanted 4 as "
            "in WORLD_SIZE");
  EXPECT_EQ(launch({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "2"}}),
            "environment: SLURM_STEP_NUM_NODES: more than one host is not built yet: got 2, wanted 1");
}

TEST(Launcher, JobsHaveDifferentNames) {
  std::string a, b, c, d;
  Environment torchrun = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "29500"}};
  launch(torchrun, &a);
  torchrun[0].second = "1";
  launch(torchrun, &b);
  torchrun[3].second = "29501";
  launch(torchrun, &c);
  torchrun.push_back({"TORCHELASTIC_RUN_ID", "x"});
  launch(torchrun, &d);
  EXPECT_EQ(a, "torchrun MASTER_ADDR=::1 MASTER_PORT=29500");
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_NE(c, d);
  launch({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, &a);
  launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, &b);
  EXPECT_TRUE(a.starts_with("mpiexec process ")) << a;
  EXPECT_EQ(a, b);
}

} // namespace
} // namespace shardc
