// SPDX-License-Identifier: Apache-2.0
// Reads the protobuf wire format of an ONNX file just far enough to leave the weights where they
// are.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace shardc {

/// Deepest legal nesting of graphs, the model's own included. Protobuf's own limit is a little
/// higher.
constexpr unsigned kMaxGraphDepth = 32;

/// A tensor's elements in the file, little-endian, at [offset, offset + length).
struct WirePayload {
  uint64_t offset = 0, length = 0;
  int field = 0; ///< of TensorProto: raw_data, or float_data / double_data packed into one piece
};

/// A ModelProto without bulk: `bytes` parses as one. A tensor whose elements were left out carries
/// the decimal index of its payload as doc string; all other doc strings, stack traces, value_info,
/// training_info and device configurations are dropped.
struct SlimModel {
  std::string bytes;
  std::vector<WirePayload> payloads;
};

/// `file` is untrusted: any bytes give a SlimModel or an error, which begins with `place`.
llvm::Expected<SlimModel> slimModel(llvm::StringRef file, llvm::StringRef place);

} // namespace shardc
