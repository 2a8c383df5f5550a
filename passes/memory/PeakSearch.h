// SPDX-License-Identifier: Apache-2.0
// Branch and bound where it is hard: around the peak.
#pragma once

#include "passes/memory/CanonicalSearch.h"

namespace shardc {

/// Searches a packing of the items that live while much lives, a window, and puts the others around
/// it. Windows from the narrowest to all items take turns with the preferences of the search, with
/// twice the work each round: how long one takes differs by a factor of a hundred, and nothing
/// tells in advance. Requires and returns what searchCanonical does. Windows of more than 4096
/// items are left out, so it may give up before the work is done.
SearchResult searchPeak(llvm::ArrayRef<PackItem> items, uint64_t capacity, uint64_t work);

} // namespace shardc
