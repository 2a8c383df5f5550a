// SPDX-License-Identifier: Apache-2.0
#include "frontend/OnnxTensor.h"
#include "frontend/MappedFiles.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include "ir/base/Tensor.h"
#include "onnx/onnx-ml.pb.h"
#include <cstring>

namespace shardc {

using onnx::TensorProto;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ONNX stores little-endian elements");

std::optional<DType> onnxDType(int dataType) {
  switch (dataType) {
  case TensorProto::FLOAT:
    return DType::F32;
  case TensorProto::DOUBLE:
    return DType::F64;
  case TensorProto::FLOAT16:
    return DType::F16;
  case TensorProto::BFLOAT16:
    return DType::BF16;
  case TensorProto::INT32:
    return DType::I32;
  case TensorProto::INT64:
    return DType::I64;
  case TensorProto::UINT8:
    return DType::U8;
  case TensorProto::BOOL:
    return DType::Bool;
  default:
    return std::nullopt;
  }
}

std::string onnxTypeName(int dataType) {
  return onnx::TensorProto_DataType_IsValid(dataType)
             ? onnx::TensorProto_DataType_Name(TensorProto::DataType(dataType))
             : std::to_string(dataType);
}

namespace {

/// Elements of a varint field (or of float_data that does not lie in one piece) as little-endian
/// `T`.
template <typename T, typename Values>
llvm::Error convert(const Values &values, std::string &out, const llvm::Twine &place) {
  out.resize(values.size() * sizeof(T));
  for (int i = 0; i < values.size(); ++i) {
    T element = T(values[i]);
    if constexpr (std::is_integral_v<T>)
      if (int64_t(element) != int64_t(values[i]))
        return userError(place + ": element " + llvm::Twine(i) + " does not fit its type: got " +
                         llvm::Twine(int64_t(values[i])));
    std::memcpy(out.data() + i * sizeof(T), &element, sizeof(T));
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> typedBytes(const TensorProto &tensor, DType dtype,
                                       const llvm::Twine &place) {
  std::string bytes;
  auto converted = [&]() -> llvm::Error {
    switch (dtype) {
    case DType::F32:
      return convert<float>(tensor.float_data(), bytes, place);
    case DType::F64:
      return convert<double>(tensor.double_data(), bytes, place);
    case DType::I64:
      return convert<int64_t>(tensor.int64_data(), bytes, place);
    case DType::I32:
      return convert<int32_t>(tensor.int32_data(), bytes, place);
    case DType::F16:
    case DType::BF16:
      return convert<uint16_t>(tensor.int32_data(), bytes, place);
    case DType::U8:
    case DType::Bool:
      return convert<uint8_t>(tensor.int32_data(), bytes, place);
    }
    llvm_unreachable("all element types are listed");
  };
  if (llvm::Error error = converted())
    return error;
  return bytes;
}

bool hasTypedData(const TensorProto &t) {
  return t.float_data_size() || t.double_data_size() || t.int32_data_size() ||
         t.int64_data_size() || t.uint64_data_size() || t.string_data_size();
}

/// Reads the key-value pairs of `external_data` and fills the place in `source`.
llvm::Error locateExternal(const TensorProto &tensor, MappedFiles &files, const llvm::Twine &place,
                           TensorSource &source) {
  llvm::StringRef location;
  std::optional<uint64_t> offset, length;
  bool located = false;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    llvm::StringRef key = entry.key(), value = entry.value();
    if (key == "location") {
      if (std::exchange(located, true))
        return userError(place + ": external data names its location twice");
      location = value;
    } else if (key == "offset" || key == "length") {
      std::optional<uint64_t> &number = key == "offset" ? offset : length;
      uint64_t parsed;
      // getAsInteger takes signs and prefixes that are not decimal digits.
      if (!llvm::all_of(value, llvm::isDigit) || value.getAsInteger(10, parsed))
        return userError(place + ": external data " + key + ": got " + quoted(value) +
                         ", wanted a decimal number of bytes");
      if (number)
        return userError(place + ": external data gives its " + key + " twice");
      number = parsed;
    } else if (key != "checksum") {
      return userError(place + ": external data has an unknown key: got " + quoted(key) +
                       ", wanted location, offset, length or checksum");
    }
  }
  uint64_t bytes = uint64_t(source.numElements()) * byteSize(source.dtype);
  if (length && *length != bytes)
    return userError(place + ": external data has the wrong length: got " + llvm::Twine(*length) +
                     " bytes, wanted " + llvm::Twine(bytes) + " for " + toString(source.dtype) +
                     " " + formatDims(source.dims));
  auto file = files.external(location, place);
  if (!file)
    return file.takeError();
  source.file = (*file)->path;
  source.offset = offset.value_or(0);
  source.length = bytes;
  if (!(*file)->bytes)
    return llvm::Error::success(); // stays Absent; the place is where the data should be
  uint64_t size = (*file)->bytes->getBufferSize();
  if (source.offset > size || bytes > size - source.offset)
    return userError(place + ": external data does not fit the file " + quoted(location) +
                     ": got a file of " + llvm::Twine(size) + " bytes, wanted " +
                     llvm::Twine(bytes) + " at offset " + llvm::Twine(source.offset));
  source.state = TensorSource::State::External;
  source.data = (*file)->bytes->getBufferStart() + source.offset;
  return llvm::Error::success();
}

} // namespace

llvm::Expected<TensorSource> locateTensor(const TensorProto &tensor,
                                          llvm::ArrayRef<WirePayload> payloads,
                                          llvm::StringRef modelPath, MappedFiles &files,
                                          const llvm::Twine &place) {
  std::optional<DType> dtype = onnxDType(tensor.data_type());
  if (!dtype)
    return userError(place + ": element type is not supported: got " +
                     onnxTypeName(tensor.data_type()) +
                     ", wanted FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT32, INT64, UINT8 or BOOL");
  if (tensor.has_segment())
    return userError(place + ": tensors in segments are not supported");
  TensorSource source;
  source.dtype = *dtype;
  source.dims.assign(tensor.dims().begin(), tensor.dims().end());
  std::optional<int64_t> elements = checkedNumElements(source.dims);
  if (!elements) {
    for (int64_t dim : source.dims)
      if (dim < 0)
        return userError(place + ": a dimension is negative: got " + formatDims(source.dims) +
                         ", wanted sizes from 0");
    return userError(place + ": dimensions overflow: got " + formatDims(source.dims) +
                     ", wanted at most 2^63 - 1 elements");
  }
  uint64_t bytes = uint64_t(*elements) * byteSize(*dtype);

  bool external = tensor.data_location() == TensorProto::EXTERNAL;
  bool inPlace = tensor.has_doc_string(); // the mark that slimModel leaves
  if (external + inPlace + hasTypedData(tensor) > 1)
    return userError(
        place + ": values are given twice, wanted one of raw_data, typed data and external data");
  if (external) {
    if (llvm::Error error = locateExternal(tensor, files, place, source))
      return error;
    return source;
  }
  auto checkSize = [&](uint64_t got) -> llvm::Error {
    if (got == bytes)
      return llvm::Error::success();
    return userError(place + ": data has the wrong size: got " + llvm::Twine(got) +
                     " bytes, wanted " + llvm::Twine(bytes) + " for " + toString(*dtype) + " " +
                     formatDims(source.dims));
  };
  if (inPlace) {
    const WirePayload &payload = payloads[std::stoul(tensor.doc_string())];
    bool right = payload.field == TensorProto::kRawDataFieldNumber ||
                 (payload.field == TensorProto::kFloatDataFieldNumber && *dtype == DType::F32) ||
                 (payload.field == TensorProto::kDoubleDataFieldNumber && *dtype == DType::F64);
    if (llvm::Error error = checkSize(right ? payload.length : 0))
      return error;
    source.state = TensorSource::State::Inline;
    source.file = modelPath.str();
    source.offset = payload.offset;
    source.length = payload.length;
    source.data = files.model().data() + payload.offset;
    return source;
  }
  if (hasTypedData(tensor)) {
    auto typed = typedBytes(tensor, *dtype, place);
    if (!typed)
      return typed.takeError();
    if (llvm::Error error = checkSize(typed->size()))
      return error;
    source.state = TensorSource::State::Inline;
    source.length = bytes;
    source.data = files.own(std::move(*typed)).data();
    return source;
  }
  if (!bytes) { // an empty tensor has all its values
    source.state = TensorSource::State::Inline;
    source.data = "";
  }
  return source;
}

} // namespace shardc
