// SPDX-License-Identifier: Apache-2.0
#include "frontend/OnnxFile.h"
#include "frontend/InlineFunctions.h"
#include "frontend/LastSelected.h"
#include "frontend/MappedFiles.h"
#include "frontend/NormaliseGraph.h"
#include "frontend/OnnxTensor.h"
#include "frontend/Quoted.h"
#include "frontend/WireFormat.h"
#include "ir/base/Error.h"
#include "ir/base/FileHash.h"
#include "ir/base/Hint.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>
#include <set>

namespace shardc {

using onnx::AttributeProto, onnx::GraphProto, onnx::NodeProto, onnx::TensorProto;

/// What one protobuf message can be.
constexpr uint64_t kMaxBytes = (uint64_t(1) << 31) - 1;

static llvm::Error tooLarge(llvm::StringRef path, uint64_t size) {
  return userError(path + ": larger than the 2 GiB that an ONNX file may have: got " +
                       llvm::Twine(size) + " bytes",
                   "export the weights as external data");
}

/// Fills an OnnxModel, one step a function, in the order in which they stand here.
class OnnxOpener {
public:
  OnnxOpener(OnnxModel &model, llvm::StringRef path) : m_(model), place_(path.str()) {}

  llvm::Error take(std::unique_ptr<llvm::MemoryBuffer> file, const OnnxOptions &options) {
    if (file->getBufferSize() > kMaxBytes)
      return tooLarge(place_, file->getBufferSize());
    std::string root = options.externalDataRoot;
    if (root.empty())
      root = llvm::sys::path::parent_path(place_).str();
    m_.path_ = place_;
    m_.files_ = std::make_unique<MappedFiles>(root);
    m_.hash_ = fileHash(file->getBuffer());
    file->dontNeedIfMmap(); // what is not read again should not count as ours
    m_.files_->setModel(std::move(file));
    return llvm::Error::success();
  }

  llvm::Error parse() {
    auto slim = slimModel(m_.files_->model(), place_);
    if (!slim)
      return slim.takeError();
    payloads_ = std::move(slim->payloads);
    if (!m_.proto_.ParseFromString(slim->bytes))
      return userError(place_ + ": damaged: a field has no valid value",
                       "export or copy the model again");
    if (!m_.proto_.has_graph())
      return wrong(m_.proto_.has_ir_version()
                       ? "damaged: it holds no graph"
                       : "not an ONNX file: got bytes that are no message, wanted a model");
    return llvm::Error::success();
  }

  llvm::Error checkVersions() {
    std::optional<int64_t> opset;
    for (onnx::OperatorSetIdProto &entry : *m_.proto_.mutable_opset_import()) {
      if (entry.domain() == "ai.onnx")
        entry.clear_domain();
      if (!entry.domain().empty())
        continue;
      if (opset)
        return wrong("the opset of the default domain is given twice");
      opset = entry.version();
    }
    if (!opset)
      return wrong("opset is missing: got no opset_import of the default domain, wanted " +
                   llvm::Twine(kMinOpset) + " to " + llvm::Twine(kMaxOpset));
    if (*opset < kMinOpset || *opset > kMaxOpset)
      return userError(place_ + ": opset is not supported: got " + llvm::Twine(*opset) +
                           ", wanted " + llvm::Twine(kMinOpset) + " to " + llvm::Twine(kMaxOpset),
                       "torch.onnx.export(..., opset_version=17)");
    m_.opset_ = *opset;
    return llvm::Error::success();
  }

  llvm::Error locateTensors() {
    llvm::SmallString<128> absolute(place_);
    llvm::sys::fs::make_absolute(absolute);
    absolutePath_ = absolute.str().str();
    if (llvm::Error error = locate(*m_.proto_.mutable_graph()))
      return error;
    for (onnx::FunctionProto &function : *m_.proto_.mutable_functions()) {
      for (NodeProto &node : *function.mutable_node())
        if (llvm::Error error = locate(node))
          return error;
      for (AttributeProto &attribute : *function.mutable_attribute_proto())
        if (llvm::Error error = locate(attribute, "function " + quoted(function.name())))
          return error;
    }
    for (auto &[file, tensors] : missing_)
      m_.notes_.push_back(
          place_ + ": external data " + quoted(file) + " is not there: " + std::to_string(tensors) +
          (tensors == 1 ? " tensor has" : " tensors have") + " a shape but no values");
    return llvm::Error::success();
  }

  llvm::Error normalise() {
    if (llvm::Error error = inlineFunctions(m_.proto_, place_))
      return error;
    GraphProto &graph = *m_.proto_.mutable_graph();
    takeLastSelected(graph, [&](const TensorProto &tensor) -> std::optional<int64_t> {
      const TensorSource &source = m_.source(tensor);
      int64_t value;
      if (source.dtype != DType::I64 || !source.dims.empty() || source.length != sizeof(value) || !source.data)
        return std::nullopt;
      std::memcpy(&value, source.data, sizeof(value));
      return value;
    });
    if (llvm::Error error = normaliseGraph(graph, place_))
      return error;
    for (const auto *values : {&graph.input(), &graph.output()})
      for (const onnx::ValueInfoProto &value : *values)
        for (const auto &dim : value.type().tensor_type().shape().dim())
          if (dim.has_dim_value() && dim.dim_value() < 0)
            return wrong("dimension of " + quoted(value.name()) + " is negative: got " +
                         llvm::Twine(dim.dim_value()));
    std::set<std::string> custom;
    collectDomains(graph, custom);
    m_.customDomains_.assign(custom.begin(), custom.end());
    for (const TensorProto &tensor : graph.initializer())
      m_.initializers_[tensor.name()] = &tensor;
    return llvm::Error::success();
  }

private:
  llvm::Error wrong(const llvm::Twine &what) { return userError(place_ + ": " + what); }

  llvm::Error locate(TensorProto &tensor, const llvm::Twine &what) {
    auto source = locateTensor(tensor, payloads_, absolutePath_, *m_.files_, place_ + ": " + what);
    if (!source)
      return source.takeError();
    if (source->state == TensorSource::State::Absent && !source->file.empty())
      ++missing_[llvm::sys::path::filename(source->file).str()];
    // The message need not hold what `source` tells.
    tensor.clear_float_data();
    tensor.clear_double_data();
    tensor.clear_int32_data();
    tensor.clear_int64_data();
    tensor.clear_external_data();
    tensor.set_doc_string(std::to_string(m_.sources_.size()));
    m_.sources_.push_back(std::move(*source));
    return llvm::Error::success();
  }

  llvm::Error locate(AttributeProto &attribute, const std::string &owner) {
    std::string what = owner + ", attribute " + quoted(attribute.name());
    if (attribute.has_t())
      if (llvm::Error error = locate(*attribute.mutable_t(), what))
        return error;
    for (TensorProto &tensor : *attribute.mutable_tensors())
      if (llvm::Error error = locate(tensor, what))
        return error;
    if (attribute.has_g())
      if (llvm::Error error = locate(*attribute.mutable_g()))
        return error;
    for (GraphProto &graph : *attribute.mutable_graphs())
      if (llvm::Error error = locate(graph))
        return error;
    return llvm::Error::success();
  }

  llvm::Error locate(NodeProto &node) {
    if (node.domain() == "ai.onnx")
      node.clear_domain();
    if (node.op_type().empty())
      return wrong(describeNode(node) + " has no op type");
    for (AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_t() || attribute.has_g() || attribute.tensors_size() ||
          attribute.graphs_size())
        if (llvm::Error error = locate(attribute, describeNode(node)))
          return error;
    return llvm::Error::success();
  }

  llvm::Error locate(GraphProto &graph) {
    for (TensorProto &tensor : *graph.mutable_initializer())
      if (llvm::Error error = locate(tensor, "initializer " + quoted(tensor.name())))
        return error;
    for (NodeProto &node : *graph.mutable_node())
      if (llvm::Error error = locate(node))
        return error;
    return llvm::Error::success();
  }

  void collectDomains(const GraphProto &graph, std::set<std::string> &domains) {
    for (const NodeProto &node : graph.node()) {
      if (!node.domain().empty())
        domains.insert(node.domain());
      for (const AttributeProto &attribute : node.attribute()) {
        if (attribute.has_g())
          collectDomains(attribute.g(), domains);
        for (const GraphProto &inner : attribute.graphs())
          collectDomains(inner, domains);
      }
    }
  }

  OnnxModel &m_;
  std::string place_, absolutePath_;
  std::vector<WirePayload> payloads_;
  std::map<std::string, int> missing_; ///< external file -> tensors that it should hold
};

OnnxModel::OnnxModel() = default;
OnnxModel::~OnnxModel() = default;

llvm::Expected<std::unique_ptr<OnnxModel>> OnnxModel::open(llvm::StringRef path,
                                                           const OnnxOptions &options) {
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return userError(path + ": cannot be opened: " + error.message(), "check the path");
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return userError(path + ": not an ONNX file: got a folder or device, wanted a regular file",
                     "give the .onnx file itself");
  if (status.getSize() > kMaxBytes)
    return tooLarge(path, status.getSize());
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return userError(path + ": cannot be read: " + file.getError().message());
  return read(std::move(*file), options);
}

llvm::Expected<std::unique_ptr<OnnxModel>> OnnxModel::read(std::unique_ptr<llvm::MemoryBuffer> file,
                                                           const OnnxOptions &options) {
  std::unique_ptr<OnnxModel> model(new OnnxModel);
  OnnxOpener opener(*model, file->getBufferIdentifier());
  auto open = [&]() -> llvm::Error {
    if (llvm::Error error = opener.take(std::move(file), options))
      return error;
    if (llvm::Error error = opener.parse())
      return error;
    if (llvm::Error error = opener.checkVersions())
      return error;
    if (llvm::Error error = opener.locateTensors())
      return error;
    return opener.normalise();
  };
  if (llvm::Error error = open())
    return withHint(std::move(error), "no exporter writes this: export the model again");
  return model;
}

std::string OnnxModel::producer() const {
  std::string text = proto_.producer_name();
  if (!text.empty() && !proto_.producer_version().empty())
    text += " " + proto_.producer_version();
  return text;
}

const TensorProto *OnnxModel::initializer(llvm::StringRef name) const {
  return initializers_.lookup(name);
}

const TensorSource &OnnxModel::source(const TensorProto &tensor) const {
  size_t index = 0;
  bool failed = llvm::StringRef(tensor.doc_string()).getAsInteger(10, index);
  assert(!failed && index < sources_.size() && "not a tensor of this model");
  (void)failed;
  return sources_[index];
}

} // namespace shardc
