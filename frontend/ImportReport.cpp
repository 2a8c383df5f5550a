// SPDX-License-Identifier: Apache-2.0
#include "frontend/ImportReport.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"

namespace shardc {

llvm::Error unsupportedError(const OnnxModel &model, const ImportNotes &notes) {
  if (notes.unsupported.empty())
    return llvm::Error::success();
  constexpr size_t kMost = 50;
  std::string list;
  for (size_t i = 0; i < std::min(notes.unsupported.size(), kMost); ++i) {
    const auto &u = notes.unsupported[i];
    list += "\n  " + u.node + " (opset " + std::to_string(model.opset()) + ") at " +
            quoted(u.place) + ": " + u.reason;
  }
  if (notes.unsupported.size() > kMost)
    list += "\n  and " + std::to_string(notes.unsupported.size() - kMost) + " more";
  return userError(
      model.path() + ": nodes that are not supported: got " +
          llvm::Twine(notes.unsupported.size()) + list,
      "export for training: torch.onnx.export(model.train(), ..., dynamo=False, opset_version=17, "
      "training=TrainingMode.TRAINING, do_constant_folding=False)");
}

void noteWhatWasFound(ImportNotes &notes) {
  auto counted = [](size_t n, llvm::StringRef one, llvm::StringRef many) {
    return std::to_string(n) + " " + (n == 1 ? one : many).str();
  };
  if (notes.foldedIfs)
    notes.notes.push_back(counted(notes.foldedIfs, "If node has", "If nodes have") +
                           " a condition that the shapes decide");
  auto note = [&](llvm::ArrayRef<std::string> nodes, llvm::StringRef one, llvm::StringRef many, llvm::StringRef what) {
    if (!nodes.empty())
      notes.notes.push_back(counted(nodes.size(), one, many) + what.str() + ": " + quoted(nodes[0]) + (nodes.size() > 1 ? ", ..." : "") +
                            " (the exporter lost the dropout of attention: export with attn_implementation=\"eager\")");
  };
  if (notes.activeDropouts)
    note(notes.idleDropouts, "Dropout node does", "Dropout nodes do", " nothing, though others are active in training");
  note(notes.lostDropouts, "attention has", "attentions have", " no dropout, though it had in PyTorch");
}

} // namespace shardc
