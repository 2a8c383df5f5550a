// SPDX-License-Identifier: Apache-2.0
// What lives at the peak as one pile: what is kept from step to step at the bottom, by kind, then
// what comes and goes, by kind and layer. It is the curve's column at the peak, in pieces.
#pragma once

#include "ir/plan/map/Scene.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace shardc::map {

struct Piece {
  uint64_t begin, end; ///< bytes from the bottom
  std::string name;    ///< the layer; of what is kept: the kind
  plan::BufferKind kind;
  bool shaded; ///< layers take turns
};
/// From the bottom up; without holes.
std::vector<Piece> pileOf(const Scene &scene);

/// The pile cut into runs that have room for a line of text, `line` being its height and `level`
/// where a height of the pile lies (downwards): thin pieces of one stem together, and what is too
/// thin still.
std::vector<llvm::ArrayRef<Piece>> linesOf(llvm::ArrayRef<Piece> pieces,
                                           llvm::function_ref<double(uint64_t)> level, double line);

/// "1.66 GiB  encoder.block, decoder.block": layers of one stem together; what is less than a
/// twentieth goes without saying.
std::string describe(llvm::ArrayRef<Piece> pieces);

/// "decoder.block" of "decoder.block.23".
std::string stemOf(llvm::StringRef name);

/// What a stem may be called, the longest first: "deberta.encoder.layer", "encoder.layer", "encoder", "layer".
std::vector<std::string> labelsOf(llvm::StringRef stem);

} // namespace shardc::map
