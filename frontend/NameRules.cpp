// SPDX-License-Identifier: Apache-2.0
#include "frontend/NameRules.h"
#include "frontend/Nodes.h"
#include "frontend/OnnxFile.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

using onnx::NodeProto;

bool isOp(const NodeProto &node, llvm::StringRef op) {
  return node.op_type() == op && node.domain().empty();
}

/// The input is the matrix of a linear layer, stored [in, out].
bool isTransposedWeight(const ParameterRead &read) {
  if (read.input != 1 || read.source->dims.size() != 2)
    return false;
  return isOp(*read.node, "MatMul") ||
         (isOp(*read.node, "Gemm") && !intAttribute(*read.node, "transB", 0));
}

/// Inputs where a float tensor is trained in any model that anybody trains.
bool isWeightInput(const ParameterRead &read) {
  const NodeProto &node = *read.node;
  if (isOp(node, "MatMul"))
    return read.source->dims.size() >= 2;
  if (isOp(node, "Gemm") || isOp(node, "Conv") || isOp(node, "LayerNormalization") ||
      isOp(node, "RMSNormalization"))
    return read.input >= 1;
  return isOp(node, "Gather") && read.input == 0 && read.source->dims.size() >= 2;
}

/// Position of the ONNX input among the tensor arguments of the FX node.
size_t argument(const ParameterRead &read, const FxNode &fx) {
  if (fx.target.contains("aten.linear.") && isOp(*read.node, "Add"))
    return 2;                              // linear = MatMul + Add
  if (fx.target.contains("aten.addmm.")) { // (bias, x, weight)
    if (isOp(*read.node, "Gemm"))
      return read.input == 2 ? 0 : read.input + 1;
    return isOp(*read.node, "Add") ? 0 : read.input + 1;
  }
  return read.input;
}

/// "a.b_1.c_2" -> "a.b.c".
std::string withoutCallSuffixes(llvm::StringRef path) {
  std::string result;
  llvm::SmallVector<llvm::StringRef> components;
  path.split(components, '.');
  for (llvm::StringRef component : components) {
    llvm::StringRef stem = component.rtrim("0123456789");
    if (stem.size() < component.size() && stem.size() > 1 && stem.ends_with("_"))
      component = stem.drop_back();
    result += (result.empty() ? "" : ".") + component.str();
  }
  return result;
}

} // namespace

bool isTorchName(llvm::StringRef name) {
  return name.contains('.') && !name.contains('/') && !name.contains("::");
}

NameRules::NameRules(const OnnxModel &model, bool neverUntie)
    : model_(model), neverUntie_(neverUntie), signature_(model.proto()) {}

void NameRules::learnCalls(llvm::ArrayRef<ParameterRead> reads) {
  if (!signature_.empty())
    return;
  for (const ParameterRead &read : reads) {
    llvm::StringRef told = isTorchName(read.valueName()) ? read.valueName() : read.tensor->name();
    std::string path = modulePath(*read.node);
    if (!isTorchName(told) || path.empty())
      continue;
    llvm::StringRef module = told.rsplit('.').first;
    if (module != path && withoutCallSuffixes(path) == withoutCallSuffixes(module))
      calls_.try_emplace(path, module.str());
  }
  // The direct use names a folded weight; a use through an Identity is another call of the module.
  auto learn = [&](const ParameterRead &read) {
    if (size_t(read.root) >= pathNames_.size())
      pathNames_.resize(read.root + 1);
    std::string module = calledModule(*read.node);
    if (pathNames_[read.root].empty() && !module.empty() && isTransposedWeight(read))
      pathNames_[read.root] = module + ".weight";
  };
  for (const ParameterRead &read : reads)
    if (read.valueName() == read.tensor->name())
      learn(read);
  llvm::for_each(reads, learn);
}

std::string NameRules::calledModule(const NodeProto &node) const {
  std::string path = modulePath(node);
  auto call = calls_.find(path);
  return call == calls_.end() ? path : call->second;
}

std::optional<ParameterName> NameRules::name(const ParameterRead &read) const {
  return signature_.empty() ? nameByPath(read) : nameBySignature(read);
}

// TorchScript exporter, and everything without metadata.
std::optional<ParameterName> NameRules::nameByPath(const ParameterRead &read) const {
  llvm::StringRef value = read.valueName(), root = read.tensor->name();
  if (neverUntie_ && isTorchName(root))
    value = root;
  if (!isTorchName(value))
    value = root;
  if (isTorchName(value)) {
    llvm::StringRef leaf = value.rsplit('.').second;
    if (leaf == "running_mean" || leaf == "running_var")
      return std::nullopt;
    return ParameterName{value.str(), /*told=*/true, /*transposed=*/false};
  }
  bool generated = root.contains("::") || root.starts_with("/");
  if (generated && !pathNames_[read.root].empty())
    return ParameterName{pathNames_[read.root], /*told=*/false, /*transposed=*/true};
  bool trained = isWeightInput(read) || (!generated && read.source->numElements() >= 2);
  if (!trained)
    return std::nullopt;
  return ParameterName{root.str(), /*told=*/false, /*transposed=*/false};
}

/// An initializer of that name, if there is one, has the shape of the one that is read.
bool NameRules::fits(const ParameterRead &read, llvm::StringRef name, bool transposed) const {
  const onnx::TensorProto *own = model_.initializer(name);
  if (!own)
    return true;
  llvm::SmallVector<int64_t, 4> dims = model_.source(*own).dims;
  if (transposed)
    std::reverse(dims.begin(), dims.end());
  return dims == read.source->dims;
}

// Dynamo exporter: the file lists the parameters, and the FX node names those that it reads.
std::optional<ParameterName> NameRules::nameBySignature(const ParameterRead &read) const {
  std::string own = read.tensor->name();
  bool ownIsParameter = signature_.hasParameter(own);
  std::optional<ParameterName> asItself;
  if (ownIsParameter)
    asItself = ParameterName{own, /*told=*/true, /*transposed=*/false};
  std::optional<FxNode> fx = fxNode(*read.node);
  if (!fx || read.source->dims.empty() || (neverUntie_ && ownIsParameter))
    return asItself;

  // A folded copy of a linear layer's weight is [in, out]; what has a parameter's name is stored as
  // it is in PyTorch.
  bool transposed = !ownIsParameter && isTransposedWeight(read) && fx->target.contains("linear");
  llvm::SmallVector<llvm::StringRef, 4> candidates;
  for (llvm::StringRef tensor : fx->tensors)
    if (llvm::StringRef name = signature_.parameter(tensor); !name.empty())
      candidates.push_back(name);
  size_t position = argument(read, *fx);
  llvm::StringRef positional =
      position < fx->tensors.size() ? signature_.parameter(fx->tensors[position]) : "";
  auto told = [&](llvm::StringRef name) {
    return ParameterName{name.str(), /*told=*/true, transposed};
  };
  bool ownIsCandidate = llvm::is_contained(candidates, own);
  if (!positional.empty() && fits(read, positional, transposed)) {
    // Inputs may be swapped; but a parameter that has an initializer of its own cannot be meant by
    // another one's.
    bool swapped = ownIsCandidate && positional != own && model_.initializer(positional);
    return told(swapped ? llvm::StringRef(own) : positional);
  }
  if (ownIsCandidate)
    return asItself;
  if (candidates.size() == 1 && (ownIsParameter || isWeightInput(read)) &&
      fits(read, candidates[0], transposed))
    return told(candidates[0]);
  if (asItself)
    return asItself;
  // A weight that reaches its product through a folded transpose: the FX node names the transpose.
  std::string byPath = modulePath(*read.node) + ".weight";
  if (isTransposedWeight(read) && candidates.empty() && signature_.hasParameter(byPath) &&
      fits(read, byPath, /*transposed=*/true))
    return ParameterName{byPath, /*told=*/true, /*transposed=*/true};
  return std::nullopt;
}

// The exporter's rule RemoveOptionalBias drops a bias that is all zero.
std::optional<std::string> NameRules::droppedBias(const NodeProto &node) const {
  bool candidate = (isOp(node, "Gemm") || isOp(node, "Conv")) && node.input_size() >= 2 &&
                   (node.input_size() == 2 || node.input(2).empty());
  std::optional<FxNode> fx = candidate ? fxNode(node) : std::nullopt;
  if (!fx || signature_.empty())
    return std::nullopt;
  size_t position = fx->target.contains("aten.addmm.") ? 0 : 2;
  if (!fx->target.contains("linear") && !fx->target.contains("conv") && position)
    return std::nullopt;
  if (position >= fx->tensors.size())
    return std::nullopt;
  llvm::StringRef name = signature_.parameter(fx->tensors[position]);
  return name.empty() ? std::nullopt : std::optional<std::string>(name.str());
}

unsigned NameRules::outputDim(const NodeProto &node) const {
  return isOp(node, "Gemm") && !intAttribute(node, "transB", 0) ? 1 : 0;
}

bool NameRules::isRepeatedCall(llvm::StringRef name, llvm::StringRef original) const {
  return name != original && withoutCallSuffixes(name) == withoutCallSuffixes(original);
}

} // namespace shardc
