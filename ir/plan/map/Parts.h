// SPDX-License-Identifier: Apache-2.0
// Which part of the model commands and buffers belong to.
#pragma once

#include "ir/plan/Positions.h"

namespace shardc::map {

/// A part is a layer. What has no layer goes by the one that its name, or the place of its command, is
/// under ("encoder.block.0.Dropout"), else by that place ("/m/lm_head/MatMul": "lm_head", `m` being the
/// exporter's wrapper); workspace, inputs, constants and scalars by their kind.
struct Parts {
  std::vector<std::string> names;  ///< in the order of the commands
  std::vector<uint32_t> ofCommand; ///< by position
  std::vector<uint32_t> ofBuffer;
};
/// `lives`: livesOf(plan).
Parts partsOf(const plan::Plan &plan, llvm::ArrayRef<Life> lives);

/// A run of positions [first, last) in one program, phase and part.
struct Band {
  uint64_t first, last;
  uint32_t program, phase, part;
};
/// In order, covering all positions. What computes decides; commands of another part that interrupt
/// a part for a moment (a gradient that is summed later) are counted to it.
std::vector<Band> bandsOf(const plan::Plan &plan, const Parts &parts);

} // namespace shardc::map
