// SPDX-License-Identifier: Apache-2.0
// The .safetensors format: 8 bytes of header length, a JSON header, the arrays end to end.
#pragma once

#include "runtime/ArrayFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace llvm {
class MemoryBuffer;
class raw_ostream;
}

namespace shardc {

/// Requires: `buffer` holds the whole file. As strict as the reference reader: no holes, no
/// overlap, no bytes at the end.
llvm::Expected<std::unique_ptr<ArrayFile>>
openSafetensors(llvm::StringRef path, std::unique_ptr<llvm::MemoryBuffer> buffer);

/// One array of a file to be written.
struct ArrayInfo {
  std::string name;
  DType dtype = DType::F32;
  Dims dims;
};

/// Bytes of the file that `streamSafetensors` would make.
uint64_t safetensorsSize(llvm::ArrayRef<ArrayInfo> arrays);

/// Writes a new file beside `path`, then renames it over `path`: whatever happens, `path` is the old file or the whole new
/// one. `write` puts the elements of all arrays into the stream, end to end, in the order of `arrays`: none need be in memory
/// as a whole. Requires: names are unique.
llvm::Error streamSafetensors(llvm::StringRef path, llvm::ArrayRef<ArrayInfo> arrays,
                              llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write);

/// The same of arrays in memory.
struct ArrayToWrite : ArrayInfo {
  const void *data = nullptr;
  ArrayToWrite(std::string name, DType dtype, Dims dims, const void *data)
      : ArrayInfo{std::move(name), dtype, std::move(dims)}, data(data) {}
};
llvm::Error writeSafetensors(llvm::StringRef path, llvm::ArrayRef<ArrayToWrite> arrays);

} // namespace shardc
