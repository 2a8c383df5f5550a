// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Screen.h"
#include <algorithm>

namespace shardc {

static unsigned terminalColumns = 0;

unsigned screenColumns() { return onTerminal() ? terminalColumns : 100; }
bool onTerminal() { return terminalColumns != 0; }
void fitTerminal(unsigned columns) { terminalColumns = columns ? std::max(columns, 60u) : 0; }

} // namespace shardc
