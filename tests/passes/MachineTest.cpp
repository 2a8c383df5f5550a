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

TEST(Machine, ACollectiveIsLatencyAndBytes) {
  Machine machine{.linkBandwidth = 1e9, .linkLatencyUs = 7};
  EXPECT_DOUBLE_EQ(machine.collectiveMicroseconds(0), 7);
  EXPECT_DOUBLE_EQ(machine.collectiveMicroseconds(5e3), 12);
}

TEST(Machine, PricesAs16BitsButNotTheUpdate) {
  Machine machine{.flops = 1e9, .flops64 = 1e9, .flops16 = 4e9, .memoryBandwidth = 1e9, .linkBandwidth = 1e9};
  machine.priceAs = DType::BF16;
  EXPECT_DOUBLE_EQ(machine.microseconds({.flops = 4e3}), 1);
  EXPECT_DOUBLE_EQ(machine.microseconds({.bytes = 4e3}, DType::F32, Phase::Backward), 2);
  EXPECT_DOUBLE_EQ(machine.microseconds({.flops = 4e3}, DType::F32, Phase::Update), 4);
  EXPECT_DOUBLE_EQ(machine.microseconds({.bytes = 4e3}, DType::F32, Phase::Update), 4);
  EXPECT_DOUBLE_EQ(machine.microseconds({.bytes = 4e3}, DType::I64), 4);
  EXPECT_DOUBLE_EQ(machine.collectiveMicroseconds(4e3), 2);
  EXPECT_DOUBLE_EQ(machine.collectiveMicroseconds(4e3, DType::F64), 4);
}

TEST(Machine, EveryBuiltInOneLoads) {
  std::string names = builtInMachines();
  SmallVector<StringRef> list;
  StringRef(names).split(list, ", ");
  EXPECT_EQ(list.size(), 7u);
  for (StringRef name : list) {
    Expected<Machine> machine = loadMachine(name);
    ASSERT_TRUE(bool(machine)) << name.str();
    EXPECT_EQ(machine->name, name);
    EXPECT_EQ(machine->priceAs == DType::BF16, name.ends_with("-bf16"));
    EXPECT_GT(machine->linkBandwidth, 0);
  }
  // 64 MiB over two GPUs: half of it is sent.
  EXPECT_NEAR(cantFail(loadMachine("h200x2")).collectiveMicroseconds(32 << 20), 64e6 * 1.048576 / 212e9 * 1e6, 5);
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
                                        "hint: built in: " + builtInMachines() + "; or a JSON file");
  EXPECT_EQ(load("{"), "$: not JSON: [1:1, byte=1]: Expected object key");
  EXPECT_EQ(load("[]"), "$: got another JSON value, wanted an object");
  EXPECT_EQ(load(std::string(100000, '[')), "$: nested too deep: got more than 8 levels, wanted at most 8");
  EXPECT_EQ(load(R"({"base": "cpu", "flops": 1, "flops": 2})"), "$: a name is there twice: got 3 entries with 2 names");
  EXPECT_EQ(load(R"({"base": "h300"})"), "$: base: got \"h300\", wanted " + builtInMachines());
  EXPECT_EQ(load(R"({"base": "cpu", "flop": 1})"),
            "$: unknown key: got 'flop', wanted one of base name flops flops_fp64 flops_16bit "
            "memory_bandwidth command_us "
            "link_bandwidth link_latency_us overlap_slowdown memory_bytes floor_bytes price_as");
  EXPECT_EQ(load(R"({"base": "cpu", "flops": -1})"),
            "$: flops: got -1, wanted a finite number from 0");
  EXPECT_EQ(load(R"({"base": "cpu", "floor_bytes": 0.5})"),
            "$: floor_bytes: got 0.5, wanted a whole number from 0");
  EXPECT_EQ(load(R"({"flops": 1e9})"), "$: flops_fp64: got none or 0, wanted a number above 0");
  EXPECT_EQ(load(R"({"flops": 1, "flops_fp64": 1, "flops_16bit": 1, "memory_bandwidth": 1})"),
            "$: link_bandwidth: got none or 0, wanted a number above 0");
  EXPECT_EQ(load(R"({"base": "cpu", "overlap_slowdown": 0.5})"),
            "$: overlap_slowdown: got 0.5, wanted a number from 1");
  EXPECT_EQ(load(R"({"base": "cpu", "price_as": "fp8"})"), "$: price_as: got \"fp8\", wanted f32 or bf16");
}

} // namespace
} // namespace shardc
