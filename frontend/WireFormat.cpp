// SPDX-License-Identifier: Apache-2.0
#include "frontend/WireFormat.h"
#include "ir/base/Error.h"
#include "onnx/onnx-ml.pb.h"

namespace shardc {
namespace {

using onnx::AttributeProto, onnx::FunctionProto, onnx::GraphProto, onnx::ModelProto;
using onnx::NodeProto, onnx::TensorProto;

enum class Kind : uint8_t {
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  Function,
  Metadata,
  Copied,
  Dropped
};
enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// What field `number` of a message of kind `parent` holds.
Kind childKind(Kind parent, int number) {
  switch (parent) {
  case Kind::Model:
    switch (number) {
    case ModelProto::kGraphFieldNumber:
      return Kind::Graph;
    case ModelProto::kFunctionsFieldNumber:
      return Kind::Function;
    case ModelProto::kDocStringFieldNumber:
    case ModelProto::kTrainingInfoFieldNumber:
    case ModelProto::kConfigurationFieldNumber:
      return Kind::Dropped;
    }
    break;
  case Kind::Graph:
    switch (number) {
    case GraphProto::kNodeFieldNumber:
      return Kind::Node;
    case GraphProto::kInitializerFieldNumber:
      return Kind::Tensor;
    case GraphProto::kDocStringFieldNumber:
    case GraphProto::kValueInfoFieldNumber:
      return Kind::Dropped;
    }
    break;
  case Kind::Function:
    switch (number) {
    case FunctionProto::kNodeFieldNumber:
      return Kind::Node;
    case FunctionProto::kAttributeProtoFieldNumber:
      return Kind::Attribute;
    case FunctionProto::kDocStringFieldNumber:
    case FunctionProto::kMetadataPropsFieldNumber:
    case FunctionProto::kValueInfoFieldNumber:
      return Kind::Dropped;
    }
    break;
  case Kind::Node:
    switch (number) {
    case NodeProto::kAttributeFieldNumber:
      return Kind::Attribute;
    case NodeProto::kMetadataPropsFieldNumber:
      return Kind::Metadata;
    case NodeProto::kDocStringFieldNumber:
    case NodeProto::kDeviceConfigurationsFieldNumber:
      return Kind::Dropped;
    }
    break;
  case Kind::Attribute:
    switch (number) {
    case AttributeProto::kTFieldNumber:
    case AttributeProto::kTensorsFieldNumber:
      return Kind::Tensor;
    case AttributeProto::kGFieldNumber:
    case AttributeProto::kGraphsFieldNumber:
      return Kind::Graph;
    case AttributeProto::kDocStringFieldNumber:
      return Kind::Dropped;
    }
    break;
  case Kind::Tensor:
    switch (number) {
    case TensorProto::kDocStringFieldNumber:
    case TensorProto::kMetadataPropsFieldNumber:
      return Kind::Dropped;
    }
    break;
  default:
    break;
  }
  return Kind::Copied;
}

struct Field {
  int number = 0;
  uint8_t wireType = 0;
  const char *begin = nullptr; ///< of the tag
  const char *payload = nullptr,
             *end = nullptr; ///< payload of a kBytes field starts after its length
};

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(char(value | 0x80));
  out.push_back(char(value));
}

void appendBytes(std::string &out, int number, llvm::StringRef bytes) {
  appendVarint(out, uint64_t(number) << 3 | kBytes);
  appendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

class Slimmer {
public:
  Slimmer(llvm::StringRef file) : file_(file) {}

  bool run() { return message(Kind::Model, file_.begin(), file_.end(), slim_.bytes, 0); }
  SlimModel take() { return std::move(slim_); }

  bool sawModel() const { return sawModel_; }
  uint64_t failedAt() const { return failedAt_; }
  const char *reason() const { return reason_; }

private:
  bool fail(const char *at, const char *reason) {
    failedAt_ = at - file_.begin();
    reason_ = reason;
    return false;
  }

  bool varint(const char *&p, const char *end, uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (p == end)
        return fail(p, "the file ends inside a field");
      uint8_t byte = *p++;
      value |= shift < 64 ? uint64_t(byte & 0x7f) << shift : 0;
      if (!(byte & 0x80))
        return true;
    }
    return fail(p, "a number is longer than 10 bytes");
  }

  bool next(const char *&p, const char *end, Field &field) {
    field.begin = p;
    uint64_t tag, length;
    if (!varint(p, end, tag))
      return false;
    field.number = int(tag >> 3 & 0x1fffffff);
    field.wireType = tag & 7;
    if (tag >> 32 || !field.number)
      return fail(field.begin, "a field has no valid number");
    field.payload = p;
    switch (field.wireType) {
    case kVarint:
      if (!varint(p, end, length))
        return false;
      break;
    case kBytes:
      if (!varint(p, end, length))
        return false;
      field.payload = p;
      break;
    case kFixed64:
      length = 8;
      break;
    case kFixed32:
      length = 4;
      break;
    default:
      return fail(field.begin, "a field has no valid wire type");
    }
    if (field.wireType != kVarint) {
      if (length > uint64_t(end - p))
        return fail(field.begin, "a field is longer than what holds it");
      p += length;
    }
    field.end = p;
    return true;
  }

  bool message(Kind kind, const char *p, const char *end, std::string &out, unsigned depth) {
    if (kind == Kind::Graph && ++depth > kMaxGraphDepth)
      return fail(p, "graphs are nested too deeply");
    Field field;
    while (p != end) {
      if (!next(p, end, field))
        return false;
      if (kind == Kind::Model)
        sawModel_ |= field.number == ModelProto::kIrVersionFieldNumber && field.wireType == kVarint;
      if (!emit(kind, field, out, depth))
        return false;
    }
    return true;
  }

  bool emit(Kind kind, const Field &field, std::string &out, unsigned depth) {
    Kind child = field.wireType == kBytes ? childKind(kind, field.number) : Kind::Copied;
    if (child == Kind::Dropped)
      return true;
    if (child == Kind::Metadata) {
      if (llvm::StringRef(field.payload, field.end - field.payload).contains("stack_trace"))
        return true;
      child = Kind::Copied;
    }
    if (child == Kind::Copied) {
      out.append(field.begin, field.end);
      return true;
    }
    std::string inner;
    bool ok = child == Kind::Tensor ? tensor(field.payload, field.end, inner)
                                    : message(child, field.payload, field.end, inner, depth);
    if (ok)
      appendBytes(out, field.number, inner);
    return ok;
  }

  /// Leaves the elements out if they lie in one piece. Protobuf takes the last raw_data, but joins
  /// packed pieces.
  bool tensor(const char *begin, const char *end, std::string &out) {
    Field raw, packed;
    unsigned pieces = 0;
    Field field;
    for (const char *p = begin; p != end;) {
      if (!next(p, end, field))
        return false;
      if (field.number == TensorProto::kRawDataFieldNumber && field.wireType == kBytes)
        raw = field;
      if (field.number == TensorProto::kFloatDataFieldNumber ||
          field.number == TensorProto::kDoubleDataFieldNumber) {
        ++pieces;
        packed = field;
      }
    }
    bool onePiece = pieces == 1 && packed.wireType == kBytes &&
                    (packed.end - packed.payload) %
                            (packed.number == TensorProto::kFloatDataFieldNumber ? 4 : 8) ==
                        0;
    const Field &left = raw.begin ? raw : onePiece ? packed : Field();
    for (const char *p = begin; p != end;) {
      next(p, end, field);
      bool isPayload = left.begin && field.number == left.number;
      if (!isPayload && childKind(Kind::Tensor, field.number) != Kind::Dropped)
        out.append(field.begin, field.end);
    }
    if (left.begin && left.payload != left.end) { // an empty raw_data is no data
      appendBytes(out, TensorProto::kDocStringFieldNumber, std::to_string(slim_.payloads.size()));
      slim_.payloads.push_back(
          {uint64_t(left.payload - file_.begin()), uint64_t(left.end - left.payload), left.number});
    }
    return true;
  }

  llvm::StringRef file_;
  SlimModel slim_;
  bool sawModel_ = false;
  uint64_t failedAt_ = 0;
  const char *reason_ = "";
};

} // namespace

llvm::Expected<SlimModel> slimModel(llvm::StringRef file, llvm::StringRef place) {
  if (file.empty())
    return userError(place + ": not an ONNX file: got an empty file, wanted a model",
                     "export or copy the model again");
  if (file.starts_with("version https://git-lfs"))
    return userError(place + ": not an ONNX file: got a Git LFS pointer", "git lfs pull");
  Slimmer slimmer(file);
  if (!slimmer.run()) {
    if (!slimmer.sawModel())
      return userError(place + ": not an ONNX file: got bytes that are no message, wanted a model",
                       "give a file written by torch.onnx.export");
    return userError(place + ": truncated or damaged at byte " + llvm::Twine(slimmer.failedAt()) +
                         ": " + slimmer.reason(),
                     "export or copy the model again");
  }
  return slimmer.take();
}

} // namespace shardc
