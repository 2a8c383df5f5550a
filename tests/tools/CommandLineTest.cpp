// SPDX-License-Identifier: Apache-2.0
// llvm::cl keeps its state for the life of a process: every parse that ends the process runs in a
// death test.
#include "tools/common/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

cl::OptionCategory testCategory("Test flags");
cl::opt<int> ranksFlag("ranks", cl::desc("how many"), cl::cat(testCategory));
cl::opt<uint64_t> seedFlag("seed", cl::cat(testCategory));
cl::opt<double> rateFlag("rate", cl::cat(testCategory));
cl::opt<Size> memoryFlag("memory", cl::desc("how much"), cl::cat(testCategory));
cl::opt<std::string> modelFlag(cl::Positional, cl::desc("MODEL.onnx"), cl::cat(testCategory));

void parse(std::vector<const char *> words) {
  words.insert(words.begin(), "/somewhere/bin/tool");
  cl::OptionCategory *categories[] = {&testCategory};
  parseCommandLine(
      int(words.size()), const_cast<char **>(words.data()),
      {"Does something.\n", "tool model.onnx --ranks 2\ntool --memory 1GiB", categories});
}

/// Runs the parse in a child whose stdout goes to stderr, where death tests look.
#define EXPECT_ENDS(CODE, TEXT, ...)                                                               \
  EXPECT_EXIT((dup2(2, 1), parse({__VA_ARGS__})), testing::ExitedWithCode(CODE), TEXT)

TEST(CommandLineDeathTest, UnknownFlag) {
  EXPECT_ENDS(1,
              "^shardc: error: command line: unknown flag: got '--rankz=3'\nhint: Did you mean "
              "'--ranks=3'\\? see tool --help\n$",
              "--rankz=3");
}

TEST(CommandLineDeathTest, WhatIsFarFromAnyFlagIsNotTakenForOne) {
  EXPECT_ENDS(1, "^shardc: error: command line: unknown flag: got '--peak'\nhint: see tool --help\n$", "--peak");
}

TEST(CommandLineDeathTest, BadNumber) {
  EXPECT_ENDS(1,
              "^shardc: error: --ranks: got 'two', wanted a whole number\nhint: see tool --help\n$",
              "--ranks=two");
  EXPECT_ENDS(1, "^shardc: error: --seed: got '-2', wanted a whole number from 0\nhint: ", "--seed=-2");
  EXPECT_ENDS(1, "^shardc: error: --rate: got 'fast', wanted a number\nhint: ", "--rate", "fast");
  EXPECT_ENDS(1, "^shardc: error: --quiet: got '3', wanted true or false\nhint: ", "--quiet=3");
}

TEST(CommandLineDeathTest, BadSize) {
  EXPECT_ENDS(1,
              "^shardc: error: --memory: got 'lots', wanted a size, "
              "such as 24GiB\nhint: ",
              "--memory", "lots");
}

TEST(CommandLineDeathTest, MissingValue) {
  EXPECT_ENDS(1, "^shardc: error: --ranks: got none, wanted a value\nhint: ", "--ranks");
}

TEST(CommandLineDeathTest, TooManyPositionals) {
  EXPECT_ENDS(
      1, "^shardc: error: command line: files: got more than one, wanted one\nhint: see tool --help\n$", "a", "b");
}

TEST(CommandLineDeathTest, Version) {
  EXPECT_ENDS(0, "^shardc [0-9]+\\.[0-9]+\\.[0-9]+\n$", "--version");
}

TEST(CommandLineDeathTest, Help) {
  EXPECT_ENDS(0,
              "Does something(.|\n)*General(.|\n)*--quiet(.|\n)*Test "
              "flags(.|\n)*--memory=<SIZE>(.|\n)*EXAMPLES:\n\n"
              "  tool model.onnx --ranks 2\n  tool --memory 1GiB\n$",
              "--help");
}

TEST(CommandLine, FillsOptions) {
  parse({"model.onnx", "--ranks", "2", "--memory=1.5KiB", "--quiet", "-v"});
  EXPECT_EQ(modelFlag, "model.onnx");
  EXPECT_EQ(ranksFlag, 2);
  EXPECT_EQ(memoryFlag.bytes, 1536);
  EXPECT_TRUE(isQuiet());
  EXPECT_FALSE(isVerbose());
  EXPECT_EQ(&notes(), &nulls());
}

} // namespace
} // namespace shardc
