// SPDX-License-Identifier: Apache-2.0
// A predicted step as a timeline for Perfetto.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// The programs of the plan, each once, one after another: a track for each stream, where a `collective_done` lasts as long as its
/// stream waits for the collective, an arrow from each signal to its waits, and
/// counters of live bytes, of each kind and of all (of one space: its highest value is the lower bound). Requires: a sound plan.
void printTrace(const plan::Plan &plan, llvm::raw_ostream &os);

} // namespace shardc
