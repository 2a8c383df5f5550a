// SPDX-License-Identifier: Apache-2.0
// A TensorProto of an untrusted file -> where its values lie, with every count and offset checked.
#pragma once

#include "frontend/TensorSource.h"
#include "frontend/WireFormat.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace onnx {
class TensorProto;
}

namespace shardc {
class MappedFiles;

/// Our element type for TensorProto::DataType, if we have it.
std::optional<DType> onnxDType(int dataType);
/// "FLOAT", "INT64" ...; "17" where onnx has no name for it.
std::string onnxTypeName(int dataType);

/// Requires: `tensor` comes out of slimModel() with these `payloads`. `modelPath` is absolute.
/// Errors begin with `place`, which names the tensor. Absent: no values in the message, or in an
/// external file that is not there.
llvm::Expected<TensorSource> locateTensor(const onnx::TensorProto &tensor,
                                          llvm::ArrayRef<WirePayload> payloads,
                                          llvm::StringRef modelPath, MappedFiles &files,
                                          const llvm::Twine &place);

} // namespace shardc
