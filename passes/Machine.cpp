// SPDX-License-Identifier: Apache-2.0
#include "passes/Machine.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "ir/base/Hint.h"
#include "ir/base/Json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace shardc {
namespace {

constexpr StringLiteral kBuiltIn[] = {"cpu", "h200", "h200x2", "h200x8", "h200-bf16", "h200x2-bf16", "h200x8-bf16"};

/// Two cores with AVX2; ranks are threads that share them.
Machine cpu() {
  return {.name = "cpu",
          .flops = 1.2e11,
          .flops64 = 6e10,
          .flops16 = 6e10,
          .memoryBandwidth = 1.6e10,
          .commandUs = 1,
          .linkBandwidth = 5e9,
          .linkLatencyUs = 5,
          .memoryBytes = 0,
          .floorBytes = uint64_t(64) << 20};
}

/// Rates at which whole steps run, so that predictions meet them: within 8 % for T5-large and DeBERTa-v2-xlarge on one and two.
/// `--calibrate` measures what a command reaches alone: 740 TFLOP/s in 16 bits, and on two GPUs a link of 204 GB/s and 5.6 us. In a
/// step a gather also rounds its slice, a reduction shares the link with gathers (25 MB a way take 117 us alone, 145 to 240 in a
/// step), and both wait for the later rank: 61 us + bytes / 131 GB/s. A collective holds some 8 of 132 multiprocessors.
/// Floors: what a process of t5-large or deberta-v2-xlarge was seen to take beside its arena, and 15 MiB.
Machine h200() {
  return {.name = "h200",
          .flops = 4.5e13,
          .flops64 = 3e13,
          .flops16 = 6e14,
          .memoryBandwidth = 4.3e12,
          .commandUs = 2,
          .linkBandwidth = 1.3e11,
          .linkLatencyUs = 61,
          .overlapSlowdown = 1.1,
          .memoryBytes = uint64_t(139) << 30,
          .floorBytes = uint64_t(557) << 20}; // 542 MiB seen: context, kernels, libraries, graphs
}

std::optional<Machine> builtIn(StringRef name) {
  if (!is_contained(kBuiltIn, name))
    return std::nullopt;
  StringRef model = name;
  bool bf16 = model.consume_back("-bf16");
  Machine machine = model == "cpu" ? cpu() : h200();
  if (model == "h200x2")
    machine.floorBytes = uint64_t(1245) << 20; // 1229 MiB seen: NCCL's buffers too
  if (model == "h200x8") {
    machine.floorBytes = uint64_t(1536) << 20; // not measured
    machine.linkBandwidth = 3e11; // 350 GB/s without multicast, less what sharing with kernels costs
  }
  if (bf16)
    machine.priceAs = DType::BF16;
  machine.name = name.str();
  return machine;
}

Error wrongValue(StringRef file, StringRef key, const json::Value &value, const Twine &wanted) {
  std::string got;
  raw_string_ostream(got) << value;
  if (got.size() > 40)
    got = got.substr(0, 37) + "...";
  return userError(file + ": " + key + ": got " + got + ", wanted " + wanted);
}

Expected<Machine> fromJson(StringRef file, const json::Object &object) {
  Machine machine{.name = file.str()};
  if (const json::Value *base = object.get("base")) {
    std::optional<StringRef> name = base->getAsString();
    std::optional<Machine> known = name ? builtIn(*name) : std::nullopt;
    if (!known)
      return wrongValue(file, "base", *base, builtInMachines());
    machine = *known;
    machine.name = file.str();
  }
  struct Rate {
    StringLiteral key;
    double Machine::*member;
  };
  constexpr Rate kRates[] = {{"flops", &Machine::flops},
                             {"flops_fp64", &Machine::flops64},
                             {"flops_16bit", &Machine::flops16},
                             {"memory_bandwidth", &Machine::memoryBandwidth},
                             {"link_bandwidth", &Machine::linkBandwidth},
                             {"command_us", &Machine::commandUs},
                             {"link_latency_us", &Machine::linkLatencyUs},
                             {"overlap_slowdown", &Machine::overlapSlowdown}};
  struct Amount {
    StringLiteral key;
    uint64_t Machine::*member;
  };
  constexpr Amount kAmounts[] = {{"memory_bytes", &Machine::memoryBytes},
                                 {"floor_bytes", &Machine::floorBytes}};
  for (const auto &[jsonKey, value] : object) {
    StringRef key = jsonKey;
    if (key == "base")
      continue;
    if (key == "name") {
      machine.name = value.getAsString().value_or(file).str();
      continue;
    }
    if (key == "price_as") {
      std::optional<DType> dtype = parseDType(value.getAsString().value_or(""));
      if (dtype != DType::F32 && dtype != DType::BF16)
        return wrongValue(file, key, value, "f32 or bf16");
      machine.priceAs = *dtype;
      continue;
    }
    auto *rate = find_if(kRates, [&](const Rate &r) { return r.key == key; });
    auto *amount = find_if(kAmounts, [&](const Amount &a) { return a.key == key; });
    if (rate != std::end(kRates)) {
      std::optional<double> number = value.getAsNumber();
      if (!number || !std::isfinite(*number) || *number < 0)
        return wrongValue(file, key, value, "a finite number from 0");
      machine.*rate->member = *number;
    } else if (amount != std::end(kAmounts)) {
      std::optional<int64_t> number = value.getAsInteger();
      if (!number || *number < 0)
        return wrongValue(file, key, value, "a whole number from 0");
      machine.*amount->member = uint64_t(*number);
    } else {
      return userError(file + ": unknown key: got '" + key +
                       "', wanted one of base name flops flops_fp64 flops_16bit memory_bandwidth command_us "
                       "link_bandwidth link_latency_us overlap_slowdown memory_bytes floor_bytes price_as");
    }
  }
  for (const Rate &rate : ArrayRef(kRates).take_front(5))
    if (machine.*rate.member <= 0)
      return userError(file + ": " + rate.key + ": got none or 0, wanted a number above 0",
                       "\"base\": \"cpu\" gives defaults");
  if (machine.overlapSlowdown < 1)
    return wrongValue(file, "overlap_slowdown", machine.overlapSlowdown, "a number from 1");
  return machine;
}

} // namespace

double Machine::microseconds(const Cost &cost, DType dtype, Phase phase) const {
  double bytes = cost.bytes;
  if (priceAs == DType::BF16 && dtype == DType::F32 && phase != Phase::Update) {
    dtype = DType::BF16;
    bytes /= 2;
  }
  double rate = dtype == DType::F64                           ? flops64
                : dtype == DType::F16 || dtype == DType::BF16 ? flops16
                                                              : flops;
  return commandUs + 1e6 * std::max(cost.flops / rate, bytes / memoryBandwidth);
}

double Machine::collectiveMicroseconds(double wireBytes, DType dtype) const {
  if (priceAs == DType::BF16 && dtype == DType::F32)
    wireBytes /= 2;
  return linkLatencyUs + 1e6 * wireBytes / linkBandwidth;
}

constexpr uint64_t kMostBytes = 1 << 20; ///< of a machine's file

std::string builtInMachines() { return join(ArrayRef(kBuiltIn), ", "); }

Expected<Machine> loadMachine(StringRef nameOrFile) {
  constexpr const char *kHint = "shardc-train --calibrate FILE.json writes such a file";
  if (std::optional<Machine> machine = builtIn(nameOrFile))
    return *machine;
  if (!nameOrFile.contains('/') && !nameOrFile.ends_with(".json"))
    return userError("--machine: no such machine: got '" + nameOrFile + "'",
                     "built in: " + builtInMachines() + "; or a JSON file");
  auto buffer = readFile(nameOrFile, kMostBytes);
  if (!buffer)
    return buffer.takeError();
  Expected<json::Object> object = parseJsonObject((*buffer)->getBuffer());
  if (!object)
    return userError(nameOrFile + ": " + toString(object.takeError()), kHint);
  return withHint(fromJson(nameOrFile, *object), kHint);
}

} // namespace shardc
