// SPDX-License-Identifier: Apache-2.0
#include "runtime/Weights.h"
#include "ir/base/Error.h"
#include "runtime/BucketSlices.h"
#include "runtime/Convert.h"
#include "runtime/InitWeights.h"
#include "runtime/ModelFiles.h"
#include "runtime/host/Parallel.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cstring>

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
  const Value &value = values_[index];
  if (value.kind == Value::FromFile)
    copyElements(value.elements, first, count, to, dtype);
  else
    initialize(plan_->parameters(index), index, value.kind == Value::Zero ? 0 : deviation_, seed_, first, count, to, dtype);
}

namespace {

/// Elements that pass through host memory at one time: few enough for a cache.
constexpr int64_t kPiece = 1 << 20;
/// Elements that a thread does at one time.
constexpr int64_t kGrain = 1 << 13;

/// What a part has of one parameter: elements [begin, end), counted from the parameter's start.
struct Held {
  const BucketPart *part;
  int64_t offset; ///< of the parameter in its bucket
  int64_t begin, end;

  Held(const BucketPart &part, int64_t offset, int64_t elements)
      : part(&part), offset(offset), begin(std::max<int64_t>(part.begin - offset, 0)),
        end(std::min(part.end - offset, elements)) {}

  /// Takes its own of elements [first, first + count), which begin at `from`, in the part's type.
  llvm::Error take(const char *from, int64_t first, int64_t count) const {
    const int64_t size = byteSize(part->dtype), low = std::max(first, begin), high = std::min(first + count, end);
    if (low >= high)
      return llvm::Error::success();
    const uint64_t at = uint64_t(low + offset - part->begin) * size, bytes = uint64_t(high - low) * size;
    from += (low - first) * size;
    if (char *data = part->data()) {
      std::memcpy(data + at, from, bytes);
      return llvm::Error::success();
    }
    return part->executor->write(part->buffer, part->offset + at, from, bytes);
  }
};

} // namespace

/// Memory for a piece, as it is made and as 16-bit parameters want it.
struct StartingWeights::Room {
  std::unique_ptr<double[]> wide{new double[kPiece]};
  std::unique_ptr<uint16_t[]> rounded{new uint16_t[kPiece]};
};

llvm::Error StartingWeights::fillParameter(int index, llvm::ArrayRef<BucketPart> parts, Room &room) const {
  const plan::Parameter &parameter = plan_->parameters(index);
  llvm::SmallVector<Held, 2> all;
  for (const BucketPart &part : parts)
    if (Held held(part, parameter.offset(), numElements(dimsOf(parameter))); held.begin < held.end)
      all.push_back(held);
  if (all.empty())
    return llvm::Error::success();
  const DType wide = wideType(all[0].part->dtype);
  char *values = reinterpret_cast<char *>(room.wide.get()), *rounded = reinterpret_cast<char *>(room.rounded.get());
  const Held *half = llvm::find_if(all, [](const Held &held) { return isHalf(held.part->dtype); });
  auto make = [&](int64_t at, int64_t first, int64_t last) {
    char *own = values + first * byteSize(wide);
    write(index, at + first, last - first, own, wide);
    if (half != all.end())
      roundElements(reinterpret_cast<float *>(own), rounded + first * sizeof(uint16_t), half->part->dtype, last - first);
  };
  auto earlier = [](const Held &a, const Held &b) { return a.begin < b.begin; };
  auto endsEarlier = [](const Held &a, const Held &b) { return a.end < b.end; };
  const int64_t begin = llvm::min_element(all, earlier)->begin, end = llvm::max_element(all, endsEarlier)->end;
  for (int64_t at = begin; at < end; at += kPiece) {
    const int64_t count = std::min(kPiece, end - at);
    host::parallelFor(count, kGrain, [&](int64_t first, int64_t last, int) { make(at, first, last); });
    for (const Held &held : all)
      if (llvm::Error error = held.take(isHalf(held.part->dtype) ? rounded : values, at, count))
        return error;
  }
  return llvm::Error::success();
}

llvm::Error StartingWeights::fill(Executor &executor) const {
  Room room;
  for (int i = 0; i < plan_->parameters_size(); ++i) {
    const plan::Bucket &bucket = plan_->buckets(plan_->parameters(i).bucket());
    llvm::SmallVector<BucketPart, 2> parts = {heldParameters(*plan_, executor, bucket)};
    if (std::optional<BucketPart> rounded = heldRounded(*plan_, executor, bucket))
      parts.push_back(*rounded);
    if (llvm::Error error = fillParameter(i, parts, room))
      return error;
  }
  return llvm::Error::success();
}

} // namespace shardc
