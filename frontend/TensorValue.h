// SPDX-License-Identifier: Apache-2.0
// Values of stored tensors and of Constant nodes as dense arrays.
#pragma once

#include "ir/base/Tensor.h"
#include "llvm/Support/Error.h"

namespace onnx {
class NodeProto;
class TensorProto;
} // namespace onnx

namespace shardc {
class OnnxModel;

/// The values of an initializer or tensor attribute, copied. Absent values are an error, which
/// begins with `place`. A Bool is 0 or 1.
llvm::Expected<Tensor> tensorValue(const OnnxModel &model, const onnx::TensorProto &tensor,
                                   const llvm::Twine &place);

/// What a Constant node gives: value, value_float(s), value_int(s). Strings and sparse tensors are
/// refused by name.
llvm::Expected<Tensor> constantValue(const OnnxModel &model, const onnx::NodeProto &node);

} // namespace shardc
