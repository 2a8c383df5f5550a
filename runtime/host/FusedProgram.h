// SPDX-License-Identifier: Apache-2.0
// A scalar program made ready for tiles: where every register lives, and the steps of one tile.
#pragma once

#include "runtime/host/Checks.h"
#include "runtime/host/FusedLoops.h"
#include "runtime/host/Strided.h"

namespace shardc::host {

/// Bytes of registers that a thread has, on its stack.
constexpr int64_t kScratchBytes = 128 << 10;
/// Most registers, direct operands and direct results together.
constexpr unsigned kMaxPlaces = 1024;

/// Where a register lives: an index into the table of addresses that each thread keeps. First come
/// the slots of scratch memory, then the direct operands and results.
using Place = int16_t;

/// One instruction for a tile. Places of absent arguments are 0.
struct Step {
  enum Kind : uint8_t { Compute, Load, Keep } kind = Compute;
  Place y = 0, a = 0, b = 0, c = 0;
  Loop loop = nullptr;  ///< Compute
  unsigned operand = 0; ///< Load: index into `inputs`
  double ratio = 0;     ///< Keep, as the rest
  int64_t id = 0;
  bool batchMajor = false;
  DType dtype = DType::F32;
};

/// An operand or result.
struct Stream {
  char *data = nullptr;
  DType dtype = DType::F32;
  Walk walk;
  Place place = -1; ///< direct: the table holds addresses inside the array itself. -1: it is not
};

/// One value in all lanes of a slot, filled before the first tile.
struct Splat {
  Place place;
  DType dtype;
  double number;    ///< the value, unless
  const char *data; ///< it is read from here when running
};

struct FusedProgram {
  int64_t size = 0;      ///< elements
  int64_t tile = 0;      ///< elements of a tile
  int64_t slotBytes = 0; ///< of one register
  unsigned slots = 0;    ///< places [0, slots) are scratch
  std::vector<Splat> splats;
  std::vector<Step> steps;
  std::vector<Stream> inputs, outputs;
  llvm::SmallVector<std::pair<Place, unsigned>, 2> stores; ///< place, output; after the steps
};

/// Requires: types of operands and results are those of `program`, results have equal dims. False:
/// `c` has the complaint.
bool compileFused(const ScalarProgram &program, const Binding &b, Checks &c, FusedProgram &to);

} // namespace shardc::host
