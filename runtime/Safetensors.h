// SPDX-License-Identifier: Apache-2.0
// The .safetensors format: 8 bytes of header length, a JSON header, the arrays end to end.
#pragma once

#include "runtime/ArrayFile.h"

namespace llvm {
class MemoryBuffer;
}

namespace shardc {

/// Requires: `buffer` holds the whole file. As strict as the reference reader: no holes, no
/// overlap, no bytes at the end.
llvm::Expected<std::unique_ptr<ArrayFile>>
openSafetensors(llvm::StringRef path, std::unique_ptr<llvm::MemoryBuffer> buffer);

/// One array to write. The caller keeps `data` alive; each float element is multiplied by `scale`
/// on its way.
struct ArrayToWrite {
  std::string name;
  DType dtype = DType::F32;
  Dims dims;
  const void *data = nullptr;
  double scale = 1;
};

/// Bytes of the file that `writeSafetensors` would make.
uint64_t safetensorsSize(llvm::ArrayRef<ArrayToWrite> arrays);

/// Writes a new file beside `path`, then renames it over `path`: whatever happens, `path` is the
/// old file or the whole new one. Requires: names are unique; no Bool or U8 (the runtime writes
/// none) has a scale.
llvm::Error writeSafetensors(llvm::StringRef path, llvm::ArrayRef<ArrayToWrite> arrays);

} // namespace shardc
