// SPDX-License-Identifier: Apache-2.0
// CUDA C++ source to machine code, with a cache on disk. Needs no device.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace shardc::cuda {

/// Machine code ("cubin") of `source` for `architecture` ("sm_90a"). Looks into `cacheFolder` first ("": no cache) under a hash of
/// all that decides the code; what is damaged there is compiled anew; a cache that cannot be written is no error. Errors: the
/// compiler's first words. Several threads and processes may share a folder. `isNew`: was it compiled; may be null.
llvm::Expected<std::string> compileCubin(llvm::StringRef source, llvm::StringRef architecture, llvm::StringRef cacheFolder,
                                         bool *isNew = nullptr);

/// Where compiled kernels are kept: shardc/kernels in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache). "" if there is none.
std::string kernelCacheFolder();

} // namespace shardc::cuda
