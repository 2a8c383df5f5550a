// SPDX-License-Identifier: Apache-2.0
// A group whose ranks are threads of one process.
#pragma once

#include "runtime/comm/Communicator.h"
#include <vector>

namespace shardc {

/// The ends of a group of that many ranks (at least 1), by rank; each outlives the calls made on it, in any
/// order. An end that is destroyed has left: others that still need it in a call get false, and a cause.
/// Ranks read each other's arrays, so that a call that fails returns only when nobody reads the caller's any
/// more.
std::vector<std::unique_ptr<Communicator>> makeLocalGroup(unsigned ranks);

} // namespace shardc
