// SPDX-License-Identifier: Apache-2.0
#include "frontend/TensorValue.h"
#include "frontend/NormaliseGraph.h"
#include "frontend/OnnxFile.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include <cstring>

namespace shardc {

llvm::Expected<Tensor> tensorValue(const OnnxModel &model, const onnx::TensorProto &proto,
                                   const llvm::Twine &place) {
  const TensorSource &source = model.source(proto);
  if (source.state == TensorSource::State::Absent)
    return userError(place + ": the values are needed but are not there" +
                     (source.file.empty() ? llvm::Twine(" (no data in the file)")
                                          : " (no file " + quoted(source.file) + ")"));
  Tensor tensor(source.dtype, source.dims);
  if (!source.length)
    return tensor;
  char *bytes = tensor.mutableData<char>();
  std::memcpy(bytes, source.data, source.length);
  if (source.dtype == DType::Bool)
    for (uint64_t i = 0; i < source.length; ++i)
      bytes[i] = bytes[i] != 0;
  return tensor;
}

llvm::Expected<Tensor> constantValue(const OnnxModel &model, const onnx::NodeProto &node) {
  std::string place = (model.path() + ": " + describeNode(node)).str();
  if (node.attribute_size() != 1)
    return userError(place + ": a constant has one value: got " +
                     llvm::Twine(node.attribute_size()) + " attributes");
  const onnx::AttributeProto &attribute = node.attribute(0);
  llvm::StringRef name = attribute.name();
  if (name == "value" && attribute.has_t())
    return tensorValue(model, attribute.t(), place);
  if (name == "value_float")
    return Tensor::of<float>(DType::F32, {}, {attribute.f()});
  if (name == "value_int")
    return Tensor::of<int64_t>(DType::I64, {}, {attribute.i()});
  if (name == "value_floats")
    return Tensor::of<float>(
        DType::F32, {attribute.floats_size()},
        llvm::ArrayRef<float>(attribute.floats().data(), attribute.floats_size()));
  if (name == "value_ints")
    return Tensor::ofInts({attribute.ints().data(), size_t(attribute.ints_size())});
  return userError(place + ": constant is not supported: got attribute " + quoted(name) +
                   ", wanted value, value_float, value_floats, value_int or value_ints");
}

} // namespace shardc
