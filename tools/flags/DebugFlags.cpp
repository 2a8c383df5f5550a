// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/DebugFlags.h"

namespace shardc {

DebugOptions DebugFlags::options() const {
  return {printAfter_, stopAfter_, timePasses_, verifyEach_, dumpDir_, reproducer_};
}

} // namespace shardc
