// SPDX-License-Identifier: Apache-2.0
// Buffers that are alike, as one: those of all layers together.
#pragma once

#include "ir/plan/Plan.h"
#include <vector>

namespace shardc {

/// "encoder.block.*.h": numbers out of a name, so that layers fall together.
std::string namePattern(llvm::StringRef name);

/// "encoder.block.*.h": what a buffer and those that are alike are called together.
std::string groupName(const plan::Plan &plan, const plan::Buffer &buffer);

struct BufferGroup {
  plan::BufferKind kind = plan::ACTIVATION;
  std::string name;                ///< groupName
  std::string shown;               ///< that, or of a single buffer its own name
  uint64_t bytes = 0, largest = 0; ///< as they are counted
  unsigned count = 0;
};

/// By kind and name pattern; most bytes first.
std::vector<BufferGroup> groupsOf(const plan::Plan &plan, llvm::ArrayRef<uint32_t> buffers);

/// Layers (parts, as the memory map has them) whose names differ in numbers only: "encoder.block.*".
struct LayerGroup {
  std::string name;
  uint64_t bytes = 0, persistent = 0; ///< as they are counted; `persistent` is a part of `bytes`
};
/// Most bytes first.
std::vector<LayerGroup> layersOf(const plan::Plan &plan, llvm::ArrayRef<uint32_t> buffers);
/// The layers themselves, in the order of the commands.
std::vector<LayerGroup> singleLayersOf(const plan::Plan &plan, llvm::ArrayRef<uint32_t> buffers);

/// What lives at the peaks of all spaces.
std::vector<uint32_t> buffersAtPeak(const plan::Plan &plan);

} // namespace shardc
