// SPDX-License-Identifier: Apache-2.0
// Buffers that are alike, as one: those of all layers together.
#pragma once

#include "ir/plan/Plan.h"
#include <vector>

namespace shardc {

/// "encoder.block.*.h": numbers out of a name, so that layers fall together.
std::string namePattern(llvm::StringRef name);

struct BufferGroup {
  plan::BufferKind kind = plan::ACTIVATION;
  std::string name;                ///< pattern of the full name
  uint64_t bytes = 0, largest = 0; ///< as they are counted
  unsigned count = 0;
};

/// By kind and name pattern; most bytes first.
std::vector<BufferGroup> groupsOf(const plan::Plan &plan, llvm::ArrayRef<uint32_t> buffers);

/// Layers whose names differ in numbers only: "encoder.block.*"; "": what belongs to no layer.
struct LayerGroup {
  std::string name;
  uint64_t bytes = 0, persistent = 0; ///< of all of them; `persistent` is a part of `bytes`
  unsigned layers = 0;
  uint64_t largest = 0;     ///< of the layer with most bytes
  std::string largestLayer; ///< its name
};
/// Most bytes first.
std::vector<LayerGroup> layersOf(const plan::Plan &plan, llvm::ArrayRef<uint32_t> buffers);

} // namespace shardc
