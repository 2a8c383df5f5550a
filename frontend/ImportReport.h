// SPDX-License-Identifier: Apache-2.0
// What an import tells the user.
#pragma once

#include "frontend/NodeContext.h"
#include "frontend/OnnxFile.h"

namespace shardc {

/// All unsupported nodes in one error; success where there are none.
llvm::Error unsupportedError(const OnnxModel &model, const ImportNotes &notes);
/// Adds lines to `notes.notes` for what rules have counted.
void noteWhatWasFound(ImportNotes &notes);

} // namespace shardc
