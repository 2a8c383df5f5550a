// SPDX-License-Identifier: Apache-2.0
#include "runtime/Weights.h"
#include "ir/base/Error.h"
#include "runtime/BucketSlices.h"
#include "runtime/Convert.h"
#include "runtime/InitWeights.h"
#include "runtime/ModelFiles.h"

namespace shardc {
namespace {

Dims dimsOf(const plan::Parameter &parameter) {
  return Dims(parameter.dims().begin(), parameter.dims().end());
}

/// "a, b and 3 more"
std::string listNames(llvm::ArrayRef<std::string> names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i)
    text += (i ? ", " : "") + names[i];
  return names.size() > 8 ? text + " and " + std::to_string(names.size() - 8) + " more" : text;
}

/// The array of a parameter under any of its names.
const FileArray *findParameter(const ArrayFile &file, const plan::Parameter &parameter) {
  const FileArray *array = file.find(parameter.name());
  for (int i = 0; !array && i < parameter.ties_size(); ++i)
    array = file.find(parameter.ties(i));
  return array;
}

llvm::Expected<ElementSource> elementsOf(ArrayFile &file, const FileArray &array, const plan::Parameter &parameter,
                                         DType dtype) {
  std::string place = file.path() + "/" + array.name;
  if (array.dims != dimsOf(parameter))
    return userError(place + ": wrong shape: got " + formatDims(array.dims) + ", wanted " +
                         formatDims(dimsOf(parameter)),
                     "the plan is of another model or size");
  if (!array.dtype || !isConvertible(*array.dtype, dtype))
    return userError(place + ": wrong dtype: got " +
                     (array.dtype ? toString(*array.dtype) : array.typeName) + ", wanted " + toString(dtype));
  auto data = file.data(array);
  if (!data)
    return data.takeError();
  return ElementSource{*data, *array.dtype};
}

bool isModelFile(const std::string &path, const plan::Plan &plan) {
  return path.empty() || llvm::StringRef(path).ends_with(".onnx") || path == plan.model().path();
}

} // namespace

StartingWeights::StartingWeights(const plan::Plan &plan, const WeightsOptions &options)
    : plan_(&plan), deviation_(options.deviation.value_or(0)), seed_(options.seed) {}
StartingWeights::StartingWeights(StartingWeights &&) = default;
StartingWeights::~StartingWeights() = default;

llvm::Expected<std::optional<StartingWeights::Value>> StartingWeights::find(const plan::Parameter &parameter) {
  DType dtype = wideType(DType(plan_->buckets(parameter.bucket()).dtype()));
  auto from = [](llvm::Expected<ElementSource> elements) -> llvm::Expected<std::optional<Value>> {
    if (!elements)
      return elements.takeError();
    return Value{Value::FromFile, *elements};
  };
  if (file_) {
    const FileArray *array = findParameter(*file_, parameter);
    if (!array)
      return std::nullopt;
    return from(elementsOf(*file_, *array, parameter, dtype));
  }
  if (parameter.source().kind() == plan::ValueSource::ZERO)
    return Value{};
  if (parameter.source().kind() == plan::ValueSource::ABSENT && !model_->has(parameter))
    return std::nullopt;
  return from(model_->find(parameter, dtype));
}

llvm::Expected<StartingWeights> StartingWeights::open(const plan::Plan &plan, const WeightsOptions &options) {
  for (const plan::Bucket &bucket : plan.buckets())
    if (!isFloat(DType(bucket.dtype())))
      return userError("plan: bucket \"" + bucket.name() + "\" has parameters of type " +
                       toString(DType(bucket.dtype())) + ", wanted floats");
  StartingWeights weights(plan, options);
  bool fromModel = isModelFile(options.file, plan);
  if (fromModel) {
    weights.model_ = std::make_unique<ModelFiles>(plan, options.planPath, options.file);
  } else {
    auto file = ArrayFile::open(options.file);
    if (!file)
      return file.takeError();
    weights.file_ = std::move(*file);
  }

  for (const plan::Parameter &parameter : plan.parameters()) {
    auto value = weights.find(parameter);
    if (!value)
      return value.takeError();
    if (!*value)
      weights.initialised_.push_back(parameter.name());
    weights.values_.push_back(value->value_or(Value{Value::Initial, {}}));
  }
  if (!weights.initialised_.empty() && !options.deviation)
    return userError(
        (fromModel ? plan.model().path() : options.file) + ": no values for " +
            llvm::Twine(weights.initialised_.size()) + " of " + llvm::Twine(plan.parameters_size()) +
            " parameters: got none for " + listNames(weights.initialised_),
        "give --weights FILE.safetensors, or --init-weights normal to start from random ones");
  return weights;
}

void StartingWeights::write(int index, int64_t first, int64_t count, char *to, DType dtype) const {
  if (isHalf(dtype)) { // as the master is rounded
    constexpr int64_t kPiece = 1 << 14;
    float piece[kPiece];
    for (int64_t done = 0; done < count; done += kPiece) {
      int64_t n = std::min(kPiece, count - done);
      write(index, first + done, n, reinterpret_cast<char *>(piece), DType::F32);
      roundElements(piece, to + done * byteSize(dtype), dtype, n);
    }
    return;
  }
  const Value &value = values_[index];
  if (value.kind == Value::FromFile)
    copyElements(value.elements, first, count, to, dtype);
  else
    initialize(plan_->parameters(index), index, value.kind == Value::Zero ? 0 : deviation_, seed_, first, count, to, dtype);
}

llvm::Error StartingWeights::fillPart(int index, const BucketPart &held, std::unique_ptr<char[]> &room) const {
  constexpr int64_t kPiece = 1 << 22; // elements on their way to a device
  const plan::Parameter &parameter = plan_->parameters(index);
  const int64_t start = parameter.offset(), begin = std::max(start, held.begin), size = byteSize(held.dtype);
  const int64_t end = std::min(start + numElements(dimsOf(parameter)), held.end);
  if (begin >= end)
    return llvm::Error::success();
  if (char *data = held.data()) {
    write(index, begin - start, end - begin, data + (begin - held.begin) * size, held.dtype);
    return llvm::Error::success();
  }
  if (!room)
    room.reset(new char[kPiece * sizeof(double)]);
  for (int64_t at = begin; at < end; at += kPiece) {
    int64_t n = std::min(kPiece, end - at);
    write(index, at - start, n, room.get(), held.dtype);
    if (llvm::Error error =
            held.executor->write(held.buffer, held.offset + (at - held.begin) * size, room.get(), n * size))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error StartingWeights::fill(Executor &executor) const {
  std::unique_ptr<char[]> room;
  for (int i = 0; i < plan_->parameters_size(); ++i) {
    const plan::Bucket &bucket = plan_->buckets(plan_->parameters(i).bucket());
    if (llvm::Error error = fillPart(i, heldParameters(*plan_, executor, bucket), room))
      return error;
    if (std::optional<BucketPart> rounded = heldRounded(*plan_, executor, bucket))
      if (llvm::Error error = fillPart(i, *rounded, room))
        return error;
  }
  return llvm::Error::success();
}

} // namespace shardc
