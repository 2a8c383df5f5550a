// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Report.h"
#include "ir/plan/Wire.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <tuple>

using namespace llvm;

namespace shardc {

std::vector<WireUse> wireUses(const plan::Plan &plan) {
  using Key = std::tuple<int, std::string, uint32_t, uint64_t>; // program, kernel, layer, bytes
  MapVector<Key, WireUse, std::map<Key, unsigned>> uses;
  for (auto [index, program] : enumerate(plan.programs())) {
    uint64_t runs = program.name() == "eval" ? 1 : runsPerStep(plan, program);
    for (const plan::Command &c : program.commands()) {
      if (!isCollective(c))
        continue;
      StringRef op = c.kernel();
      op.consume_back("_start");
      uint64_t bytes = collectiveBytes(c);
      WireUse &use = uses[{int(index), c.kernel(), c.layer(), bytes}];
      use.op = op.str();
      use.program = program.name();
      use.bucket = plan.strings(c.layer());
      use.bytes = bytes;
      use.count += runs;
      use.sent += runs * wireBytes(c.kernel(), collectiveRanks(c), bytes);
    }
  }
  std::vector<WireUse> list;
  for (auto &entry : uses.takeVector())
    list.push_back(std::move(entry.second));
  return list;
}

WireBytes wireBytesPerStep(const plan::Plan &plan) {
  WireBytes bytes;
  for (const WireUse &use : wireUses(plan))
    if (use.perStep())
      (use.isScalar() ? bytes.scalars : bytes.buckets) += use.sent;
  return bytes;
}

} // namespace shardc
