// SPDX-License-Identifier: Apache-2.0
// Opens an ONNX file: its structure as a checked, normalised message, its weights as places in
// mapped files.
#pragma once

#include "frontend/TensorSource.h"
#include "onnx/onnx-ml.pb.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <vector>

namespace shardc {

constexpr int kMinOpset = 13, kMaxOpset = 24;

struct OnnxOptions {
  /// Folder that external data lies in; "": the folder of the model. Never left, never through a
  /// link.
  std::string externalDataRoot;
};

class MappedFiles;

/// One ONNX model. The message is ours and normalised:
///  - nodes of every (sub)graph stand in topological order (stable: a sorted graph keeps its
///  order);
///  - calls of model-local functions are inlined, nested ones too; `functions` is empty;
///  - an initializer that is also a graph input is an initializer only;
///  - names are unique in their graph, every non-empty input is defined before it is used
///  (subgraphs see the
///    values of the graphs around them); "" stands for "absent" everywhere;
///  - doc strings and stack traces are gone; large raw bytes are not in the message: ask
///  `source()`.
/// Owns the message and the mapped files; what it hands out lives as long as it does.
class OnnxModel {
public:
  /// Errors name the file and the node or tensor. A missing external file is no error: see
  /// `notes()`.
  static llvm::Expected<std::unique_ptr<OnnxModel>> open(llvm::StringRef path,
                                                         const OnnxOptions &options = {});
  /// The same for a file that is in memory; its identifier is the path.
  static llvm::Expected<std::unique_ptr<OnnxModel>> read(std::unique_ptr<llvm::MemoryBuffer> file,
                                                         const OnnxOptions &options = {});
  ~OnnxModel();

  llvm::StringRef path() const { return path_; }
  const onnx::ModelProto &proto() const { return proto_; }
  const onnx::GraphProto &graph() const { return proto_.graph(); }

  /// Opset of the default domain, kMinOpset..kMaxOpset.
  int opset() const { return opset_; }
  int64_t irVersion() const { return proto_.ir_version(); }
  /// "pytorch 2.11.0"; "" when the file does not tell.
  std::string producer() const;
  /// fileHash() of the model file (external files are not part of it).
  llvm::StringRef hash() const { return hash_; }
  /// Domains of nodes that are neither ONNX's own nor functions of the model, sorted. No importer
  /// knows them: it reports such nodes together with all others that are not supported.
  llvm::ArrayRef<std::string> customDomains() const { return customDomains_; }
  /// What a user should know though it is no error; for stderr, one line each.
  llvm::ArrayRef<std::string> notes() const { return notes_; }

  /// The top-level graph's initializer of that name, or null.
  const onnx::TensorProto *initializer(llvm::StringRef name) const;
  /// Where the values of an initializer or tensor attribute of `proto()` lie. open() checked every
  /// one of them: element type known, no negative dim, exactly as many bytes as the dims need.
  const TensorSource &source(const onnx::TensorProto &tensor) const;

private:
  friend class OnnxOpener;
  OnnxModel();

  std::string path_, hash_;
  onnx::ModelProto proto_;
  int opset_ = 0;
  std::vector<std::string> customDomains_, notes_;
  llvm::StringMap<const onnx::TensorProto *> initializers_;
  std::vector<TensorSource>
      sources_; ///< by the number that a tensor carries in place of a doc string
  std::unique_ptr<MappedFiles> files_;
};

} // namespace shardc
