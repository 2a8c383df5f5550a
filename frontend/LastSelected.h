// SPDX-License-Identifier: Apache-2.0
// The last row that a condition selects, of each element of the batch: how classifiers on T5 and BART find the end token.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <optional>

namespace onnx {
class GraphProto;
class TensorProto;
} // namespace onnx

namespace shardc {

/// The number that an i64 scalar holds; nullopt for anything else.
using ScalarOf = llvm::function_ref<std::optional<int64_t>(const onnx::TensorProto &)>;

/// hidden[mask].view(batch, -1, size)[:, -1], exported as NonZero -> Transpose -> GatherND -> Reshape -> Gather, becomes
/// GatherND(hidden, ArgMax(mask, the last one), batch_dims=1), whose sizes do not depend on data. The same where PyTorch's
/// view is defined: if each element of the batch has as many rows selected. The nodes that are made stand at the end.
void takeLastSelected(onnx::GraphProto &graph, ScalarOf scalar);

} // namespace shardc
