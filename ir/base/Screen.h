// SPDX-License-Identifier: Apache-2.0
// How wide what people read may be.
#pragma once

namespace shardc {

/// What lines are to fit into: 100 columns, or those of the terminal that a tool writes to.
unsigned screenColumns();
bool onTerminal();
/// `columns`: of that terminal, taken as 60 if they are fewer; 0: there is none.
void fitTerminal(unsigned columns);

} // namespace shardc
