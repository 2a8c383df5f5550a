// SPDX-License-Identifier: Apache-2.0
// Replaces calls of model-local functions by their bodies.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace onnx {
class ModelProto;
}

namespace shardc {

/// Leaves `model` without functions: every call, in subgraphs and in other functions too, becomes
/// the nodes of the body with values called CALL/VALUE, attribute references filled in from the
/// call, else from the function's defaults, else dropped. Errors, which begin with `place`: a
/// function defined twice or calling itself (the chain is printed), wrong numbers of inputs or
/// outputs, another opset than the model's, more than 200,000 nodes or 64 MiB.
llvm::Error inlineFunctions(onnx::ModelProto &model, llvm::StringRef place);

} // namespace shardc
