// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Calibration.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "runtime/Calibrate.h"
#include "runtime/Ranks.h"
#include "runtime/TrainLog.h"
#include "runtime/comm/Communicator.h"
#include "tools/common/CommandLine.h"
#include "tools/train/Devices.h"
#include "tools/train/Groups.h"
#include "tools/train/Spawn.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

namespace shardc {
namespace {

/// Four digits: more would be noise.
void attribute(llvm::json::OStream &json, const char *key, double value) {
  json.attributeBegin(key);
  json.rawValue([&](llvm::raw_ostream &os) { os << llvm::format("%.4g", value); });
  json.attributeEnd();
}

struct Measured {
  MachineRates rates;
  DeviceFacts device; ///< of CUDA, as what follows
  uint64_t floorBytes = 0;
};

void print(llvm::raw_ostream &os, const Measured &m, DeviceKind kind, unsigned ranks) {
  const MachineRates &r = m.rates;
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("base", kind == DeviceKind::Cuda ? "h200" : "cpu");
    std::string name = kind == DeviceKind::Cuda ? m.device.name : "cpu";
    json.attribute("name", ranks > 1 ? name + " x" + std::to_string(ranks) : name);
    const std::pair<const char *, double> rates[] = {{"flops", r.flops},
                                                     {"flops_16bit", r.flops16},
                                                     {"flops_fp64", r.flops64},
                                                     {"memory_bandwidth", r.memoryBandwidth},
                                                     {"command_us", r.commandUs}};
    for (auto [key, value] : rates)
      attribute(json, key, value);
    if (ranks > 1) {
      attribute(json, "link_bandwidth", r.linkBandwidth);
      attribute(json, "link_latency_us", r.linkLatencyUs);
      attribute(json, "overlap_slowdown", r.overlapSlowdown);
    }
    if (kind == DeviceKind::Cuda) {
      json.attribute("memory_bytes", int64_t(m.device.memoryBytes));
      json.attribute("floor_bytes", int64_t(m.floorBytes));
    }
  });
  os << '\n';
}

llvm::Error measure(const TrainFlags &flags, DeviceKind kind, std::optional<unsigned> processRank,
                    Communicator &communicator) {
  const CalibrationSizes sizes =
      kind == DeviceKind::Cuda ? deviceCalibrationSizes() : CalibrationSizes();
  const plan::Plan plan = calibrationPlan(communicator.size(), sizes);
  RankDevice where;
  where.kind = kind;
  where.processRank = processRank;
  auto executor = createExecutor(plan, communicator, where);
  if (!executor)
    return executor.takeError();
  auto rates = measureMachine(sizes, **executor, communicator);
  if (!rates)
    return rates.takeError();
  if (communicator.rank() != 0)
    return waitForAll(communicator);
  Measured measured{*rates, {}, 0};
  if (kind == DeviceKind::Cuda) {
    measured.device = deviceFacts();
    measured.floorBytes = memoryUse(plan, 1).beside;
  }
  auto write = [&](llvm::raw_ostream &os) {
    print(os, measured, kind, communicator.size());
    return llvm::Error::success();
  };
  if (llvm::Error error = writeFileAtomically(flags.calibrate, write))
    return error;
  notes() << "the machine is in " << flags.calibrate << ": shardc --machine " << flags.calibrate
          << '\n';
  return waitForAll(communicator);
}

} // namespace

llvm::Expected<JobResults> runCalibration(const TrainFlags &flags) {
  if (llvm::Error error = checkWritable(flags.calibrate, 0))
    return error;
  auto launch = readLaunch(std::getenv);
  if (!launch)
    return launch.takeError();
  auto kind = chooseDevice(flags.device.empty() && cudaDevices() > 0 ? "cuda" : flags.device, {});
  if (!kind)
    return kind.takeError();
  const unsigned ranks = *launch ? (*launch)->size : std::max(1u, flags.ranks);
  JobResults results;
  results.isRoot = false;
  if (!*launch && ranks > 1 && *kind == DeviceKind::Cuda) {
    if (cudaDevices() < ranks)
      return userError("--calibrate: too few devices: got " + llvm::Twine(cudaDevices()) +
                           ", wanted " + llvm::Twine(ranks) + ", one for each rank",
                       "take a smaller --ranks");
    auto code = spawnSelf(flags.arguments, ranks);
    if (!code)
      return code.takeError();
    results.exitCode = *code;
    return results;
  }
  Groups groups;
  if (*launch) {
    if (llvm::Error error = joinGroups(**launch, /*withShadows=*/false, groups))
      return error;
  } else {
    groups = makeLocalGroups(ranks, /*withShadows=*/false);
  }
  auto runRank = [&](Communicator &communicator) {
    std::optional<unsigned> processRank;
    if (*launch)
      processRank = (*launch)->rank;
    return measure(flags, *kind, processRank, communicator);
  };
  if (llvm::Error error = runRanks(groups.ranks, runRank))
    return error;
  results.exitCode = 0;
  return results;
}

} // namespace shardc
