// SPDX-License-Identifier: Apache-2.0
#include "frontend/FoldedParameters.h"
#include "frontend/NameRules.h"
#include "frontend/OnnxFile.h"
#include "frontend/ParameterNames.h"
#include "frontend/Quoted.h"
#include "frontend/TensorValue.h"
#include "ir/base/Error.h"
#include "llvm/ADT/StringSet.h"
#include <set>

namespace shardc {
namespace {

/// Masks and powers hold few numbers; what came from parameters holds many.
bool hasManyNumbers(const OnnxModel &model, const onnx::TensorProto &tensor) {
  constexpr size_t kFew = 4;
  auto value = tensorValue(model, tensor, tensor.name());
  if (!value) { // it has none
    llvm::consumeError(value.takeError());
    return false;
  }
  std::set<double> numbers;
  for (int64_t i = 0; i < value->numElements() && numbers.size() <= kFew; ++i)
    numbers.insert(value->asDouble(i));
  return isFloat(value->dtype()) && numbers.size() > kFew;
}

struct Computed {
  std::string name, module; ///< of the constant; of a node that reads it
};

std::vector<Computed> computedConstants(const OnnxModel &model, const ParameterTable &table) {
  std::set<std::pair<int, int>> parameters;
  for (const ParameterUse &use : table.uses)
    parameters.insert({use.node, use.input});
  std::vector<Computed> found;
  for (int i = 0; i < model.graph().node_size(); ++i) {
    const onnx::NodeProto &node = model.graph().node(i);
    if (node.op_type() == "Identity") // uses are those behind it
      continue;
    for (int k = 0; k < node.input_size(); ++k) {
      const onnx::TensorProto *tensor = model.initializer(node.input(k));
      if (tensor && !isTorchName(tensor->name()) && !parameters.count({i, k}) && hasManyNumbers(model, *tensor))
        found.push_back({tensor->name(), modulePath(node)});
    }
  }
  return found;
}

llvm::StringRef parent(llvm::StringRef path) { return path.rsplit('.').first; }

bool isWithin(llvm::StringRef path, llvm::StringRef module) {
  return path.consume_front(module) && (path.empty() || path.front() == '.');
}

} // namespace

static llvm::Error folded(const OnnxModel &model, const Computed &constant, const llvm::Twine &missing, const char *options) {
  return userError(model.path() + ": the exporter computed constants, it seems from parameters, which would not be trained: got " +
                       quoted(constant.name) + ", read in " + quoted(constant.module) + missing,
                   llvm::Twine("export without optimisation: torch.onnx.export(..., ") + options + ")");
}

llvm::Error refuseFolded(const OnnxModel &model, const TorchSignature &signature,
                         const ParameterTable &table) {
  if (signature.empty()) { // TorchScript: what it folds is called after the node that reads it
    for (const Computed &c : computedConstants(model, table))
      if (llvm::StringRef(c.name).starts_with("onnx::"))
        return folded(model, c, "", "do_constant_folding=False");
    return llvm::Error::success();
  }
  llvm::StringSet<> known;
  for (const ModelParameter &p : table.parameters) {
    known.insert(p.name);
    for (const std::string &name : p.otherNames)
      known.insert(name);
  }
  std::vector<llvm::StringRef> missing;
  for (llvm::StringRef name : signature.parameters())
    if (!known.contains(name) && !known.contains(name.split('.').second)) // without a wrapper's prefix
      missing.push_back(name);
  if (missing.empty())
    return llvm::Error::success();

  // The one whose module is nearest: an embedding that is tied is missing too.
  const std::vector<Computed> constants = computedConstants(model, table);
  const Computed *constant = nullptr;
  llvm::StringRef parameter, nearest;
  for (llvm::StringRef name : missing)
    for (llvm::StringRef module : {parent(parent(name)), parent(name)}) {
      if (!module.contains('.') || module.size() <= nearest.size())
        continue;
      auto it = llvm::find_if(constants, [&](const Computed &c) { return isWithin(c.module, module); });
      if (it != constants.end()) {
        constant = &*it;
        parameter = name;
        nearest = module;
      }
    }
  if (constant)
    return folded(model, *constant, ", but no " + quoted(parameter), "dynamo=True, optimize=False");
  return llvm::Error::success();
}

} // namespace shardc
