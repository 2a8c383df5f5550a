// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz: a zip archive of .npy members, stored (np.savez) or deflated (np.savez_compressed).
#pragma once

#include "runtime/ArrayFile.h"

namespace shardc {

/// Reads every member's header; members that do not end in ".npy" are passed over.
llvm::Expected<std::unique_ptr<ArrayFile>> openNpz(llvm::StringRef path);

} // namespace shardc
