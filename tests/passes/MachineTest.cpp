// SPDX-License-Identifier: Apache-2.0
#include "passes/Machine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

/// What a file of that text gives; `$` stands for its path.
std::string load(StringRef text, Machine *out = nullptr) {
  SmallString<128> path;
  int file;
  EXPECT_FALSE(sys::fs::createTemporaryFile("machine", "json", file, path));
  raw_fd_ostream(file, /*shouldClose=*/true) << text;
  Expected<Machine> machine = loadMachine(path);
  sys::fs::remove(path);
  if (!machine) {
    std::string error = toString(machine.takeError());
    error = StringRef(error).split("\nhint").first.str();
    return "$" + error.substr(path.size());
  }
  if (out)
    *out = *machine;
  return "";
}

TEST(Machine, IsARoofline) {
  Machine machine{.flops = 1e9, .flops64 = 5e8, .memoryBandwidth = 1e9, .commandUs = 3};
  EXPECT_DOUBLE_EQ(machine.microseconds({.flops = 2e3, .bytes = 1e3}), 5);  // computing
  EXPECT_DOUBLE_EQ(machine.microseconds({.flops = 1e3, .bytes = 9e3}), 12); // moving
  EXPECT_DOUBLE_EQ(machine.microseconds({.flops = 2e3}, DType::F64), 7);
}

TEST(Machine, FilesSayWhatDiffersFromABase) {
  Machine machine;
  EXPECT_EQ(load(R"({"base": "h200", "command_us": 7, "floor_bytes": 5})", &machine), "");
  Expected<Machine> base = loadMachine("h200");
  ASSERT_TRUE(bool(base));
  EXPECT_EQ(machine.commandUs, 7);
  EXPECT_EQ(machine.floorBytes, 5u);
  EXPECT_EQ(machine.flops, base->flops);
  EXPECT_NE(machine.name, base->name);
}

TEST(Machine, MistakesAreNamed) {
  Expected<Machine> none = loadMachine("h300");
  EXPECT_FALSE(bool(none));
  EXPECT_EQ(toString(none.takeError()), "--machine: no such machine: got 'h300'\n"
                                        "hint: built in: cpu, h200; or a JSON file");
  EXPECT_EQ(load("{"), "$: not JSON: [1:1, byte=1]: Expected object key");
  EXPECT_EQ(load("[]"), "$: wanted a JSON object");
  EXPECT_EQ(load(R"({"base": "h300"})"), "$: base: not a built-in machine");
  EXPECT_EQ(load(R"({"base": "cpu", "flop": 1})"), "$: unknown key: got 'flop'");
  EXPECT_EQ(load(R"({"base": "cpu", "flops": -1})"),
            "$: flops: wanted a finite number of at least 0");
  EXPECT_EQ(load(R"({"base": "cpu", "floor_bytes": 0.5})"),
            "$: floor_bytes: wanted a finite number of at least 0");
  EXPECT_EQ(load(R"({"flops": 1e9})"), "$: flops_fp64: missing or 0");
}

} // namespace
} // namespace shardc
