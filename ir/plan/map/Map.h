// SPDX-License-Identifier: Apache-2.0
// Pictures of a plan's memory: address over time. All functions require a sound plan (checkPlan).
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// A picture for reports: what the peak is made of, live bytes by kind, the map of each space, what
/// lives at the peak by layer. What is smaller than half a pixel is left out. At most a few hundred
/// KB.
void printMapSvg(const plan::Plan &plan, llvm::raw_ostream &os);

/// The same to look around in: one page that needs nothing else, with zoom, search, and what lives
/// at any moment.
void printMapHtml(const plan::Plan &plan, llvm::raw_ostream &os);

/// The packing of a space as MiniMalloc writes problems and solutions:
/// `id,lower,upper,size,offset`, then `kind,layer,name`, which its reader and ours skip; layers as the map
/// has them. Half-open lifetimes in positions; what is persistent lives in all of them. Sizes are rounded up to
/// kAlignment. Commas and quotes in names become '_'. Buffers of no bytes are left out.
void printCsv(const plan::Plan &plan, uint32_t space, llvm::raw_ostream &os);

} // namespace shardc
