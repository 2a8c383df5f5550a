// SPDX-License-Identifier: Apache-2.0
// The peak of a space in words: where it is, what lives there, and why.
#pragma once

#include "ir/plan/map/Curve.h"
#include "ir/plan/map/Parts.h"
#include <string>

namespace shardc::map {

/// Buffers that live at the peak for one reason, in one part or in all parts of one name and
/// different numbers.
struct PeakGroup {
  std::string name; ///< "lm_head", "decoder.block.0-23"
  std::string why;  ///< "saved for the backward pass"
  std::vector<std::string>
      operands; ///< names inside the layer of those that the command at the peak reads or writes
  std::array<uint64_t, kKinds> bytes{};
  uint64_t total = 0;
  unsigned parts = 0, buffers = 0;
  uint64_t mostOfAPart = 0; ///< bytes
};

struct Story {
  uint64_t bytes = 0, position = 0; ///< of the peak
  std::string part;                 ///< what computes there: "lm_head"
  std::string where;                ///< "backward pass of lm_head (matmul, command 524 of train)"
  /// "62.0 % is kept from step to step (optimizer state, parameters), 33.2 % saved for the backward
  /// pass. 99.6 % of what the forward pass saves lives at that moment. Most in one layer: shared, 329 MiB."
  std::string summary;
  std::vector<PeakGroup> groups; ///< largest first; their sum is `bytes`
};
Story storyOf(const plan::Plan &plan, uint32_t space, const Parts &parts, llvm::ArrayRef<Life> lives,
              llvm::ArrayRef<Band> bands);

/// "forward pass", "backward pass", "update", "evaluation".
llvm::StringRef phaseName(const plan::Plan &plan, const Band &band);
/// The band that a position lies in. Requires: there are commands.
const Band &bandAt(llvm::ArrayRef<Band> bands, uint64_t position);

} // namespace shardc::map
