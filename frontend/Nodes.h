// SPDX-License-Identifier: Apache-2.0
// What is asked of a graph's nodes before they are imported.
#pragma once

#include "llvm/ADT/StringMap.h"
#include <cstdint>

namespace onnx {
class GraphProto;
class NodeProto;
} // namespace onnx

namespace shardc {

int64_t intAttribute(const onnx::NodeProto &node, llvm::StringRef name, int64_t otherwise);
/// By name of a value: the index of the node that makes it.
llvm::StringMap<int> findProducers(const onnx::GraphProto &graph);

} // namespace shardc
