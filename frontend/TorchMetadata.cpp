// SPDX-License-Identifier: Apache-2.0
#include "frontend/TorchMetadata.h"
#include "onnx/onnx-ml.pb.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

template <typename Message> llvm::StringRef metadata(const Message &message, llvm::StringRef key) {
  for (const onnx::StringStringEntryProto &entry : message.metadata_props())
    if (entry.key() == key)
      return entry.value();
  return "";
}

constexpr llvm::StringLiteral kSignature = "pkg.torch.export.ExportedProgram.graph_signature";

} // namespace

// A line reads `p_m_shared_weight: PARAMETER target='m.shared.weight'`.
TorchSignature::TorchSignature(const onnx::ModelProto &model) {
  llvm::StringRef text = metadata(model.graph(), kSignature);
  if (text.empty())
    text = metadata(model, kSignature);
  while (!text.empty()) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    auto [placeholder, rest] = line.trim().split(": PARAMETER target='");
    llvm::StringRef name = rest.split('\'').first;
    if (name.empty() || !byName_.try_emplace(name, parameters_.size()).second)
      continue;
    byPlaceholder_.try_emplace(placeholder, parameters_.size());
    parameters_.push_back(name.str());
  }
}

// `%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_w,
// [1, %y]), kwargs = {})`
std::optional<FxNode> fxNode(const onnx::NodeProto &node) {
  llvm::StringRef text = metadata(node, "pkg.torch.onnx.fx_node");
  if (text.empty())
    return std::nullopt;
  FxNode fx;
  text = text.split("target=").second;
  std::tie(fx.target, text) = text.split(']');
  text = text.split("args = (").second;
  for (size_t at = text.find('%'); at != llvm::StringRef::npos; at = text.find('%')) {
    text = text.drop_front(at + 1);
    llvm::StringRef name =
        text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    fx.tensors.push_back(name);
    text = text.drop_front(name.size());
  }
  return fx;
}

/// Argument `index` of a call of `target`, as it is written; "" where there is none.
static llvm::StringRef fxArgument(const onnx::NodeProto &node, llvm::StringRef target, size_t index) {
  llvm::StringRef text = metadata(node, "pkg.torch.onnx.fx_node").split((target + "](args = (").str()).second;
  llvm::SmallVector<llvm::StringRef, 8> args;
  text.split(')').first.split(args, ", ");
  return index < args.size() ? args[index] : "";
}

// `torch.ops.aten.embedding.default](args = (%p_weight, %ids, 0), kwargs = {})`
std::optional<int64_t> paddingRow(const onnx::NodeProto &node) {
  int64_t row;
  llvm::StringRef text = fxArgument(node, "aten.embedding.default", 2);
  return text.getAsInteger(10, row) || row < 0 ? std::nullopt : std::optional(row);
}

// `torch.ops.aten.scaled_dot_product_attention.default](args = (%q, %k, %v, None, 0.1), kwargs = {scale: 1.0})`
bool hadDropout(const onnx::NodeProto &node) {
  double ratio;
  return !fxArgument(node, "aten.scaled_dot_product_attention.default", 4).getAsDouble(ratio) && ratio > 0;
}

// `torch.ops.aten.cross_entropy_loss.default](args = (%y, %t, None, 1, -100, 0.1), kwargs = {})`
llvm::StringRef labelSmoothing(const onnx::NodeProto &node) {
  double number;
  llvm::StringRef text = fxArgument(node, "aten.cross_entropy_loss.default", 5);
  return !text.getAsDouble(number) && number != 0 ? text : "";
}

std::string modulePath(const onnx::NodeProto &node) {
  // ['', 'm', 'm.encoder', 'linear']: the last one is the FX node itself
  llvm::StringRef scopes = metadata(node, "pkg.torch.onnx.name_scopes");
  if (!scopes.empty()) {
    llvm::SmallVector<llvm::StringRef> parts;
    scopes.split(parts, '\'');
    return parts.size() >= 5 ? parts[parts.size() - 4].str() : "";
  }
  llvm::StringRef name = node.name();
  if (!name.consume_front("/"))
    return "";
  std::string path = name.rsplit('/').second.empty() ? "" : name.rsplit('/').first.str();
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

} // namespace shardc
