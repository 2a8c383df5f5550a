// SPDX-License-Identifier: Apache-2.0
#include "runtime/Weights.h"
#include "ir/base/Error.h"
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

std::vector<ArrayToWrite> arrays(const plan::Plan &plan, Executor &executor, bool gradients,
                                 double scale) {
  std::vector<ArrayToWrite> result;
  for (const plan::Parameter &parameter : plan.parameters()) {
    const plan::Bucket &bucket = plan.buckets(parameter.bucket());
    int32_t buffer = gradients ? bucket.gradient_buffer() : bucket.parameter_buffer();
    if (buffer < 0 || (gradients && !parameter.trainable()))
      continue;
    DType dtype = DType(bucket.dtype());
    char *start =
        static_cast<char *>(executor.buffer(buffer)) + parameter.offset() * byteSize(dtype);
    result.push_back({parameter.name(), dtype, dimsOf(parameter), start, scale});
  }
  return result;
}

/// The array of a parameter under any of its names.
const FileArray *findParameter(const ArrayFile &file, const plan::Parameter &parameter) {
  const FileArray *array = file.find(parameter.name());
  for (int i = 0; !array && i < parameter.ties_size(); ++i)
    array = file.find(parameter.ties(i));
  return array;
}

llvm::Error loadArray(ArrayFile &file, const FileArray &array, const ArrayToWrite &target) {
  std::string place = file.path() + "/" + array.name;
  if (array.dims != target.dims)
    return userError(place + ": wrong shape: got " + formatDims(array.dims) + ", wanted " +
                         formatDims(target.dims),
                     "the plan is of another model or size");
  if (!array.dtype || !isConvertible(*array.dtype, target.dtype))
    return userError(place + ": wrong dtype: got " +
                     (array.dtype ? toString(*array.dtype) : array.typeName) + ", wanted " +
                     toString(target.dtype));
  auto data = file.data(array);
  if (!data)
    return data.takeError();
  convertElements(*data, *array.dtype, const_cast<void *>(target.data), target.dtype,
                  numElements(array.dims));
  return llvm::Error::success();
}

/// The sources of one load; one of the two is used.
struct Sources {
  std::unique_ptr<ArrayFile> file;
  ModelFiles model;

  /// False: there are no values for it.
  llvm::Expected<bool> load(const plan::Parameter &parameter, const ArrayToWrite &target) {
    if (file) {
      const FileArray *array = findParameter(*file, parameter);
      if (!array)
        return false;
      if (llvm::Error error = loadArray(*file, *array, target))
        return error;
      return true;
    }
    if (parameter.source().kind() == plan::ValueSource::ABSENT && !model.has(parameter))
      return false;
    if (parameter.source().kind() == plan::ValueSource::ZERO)
      initializeZero(target);
    else if (llvm::Error error =
                 model.load(parameter, const_cast<void *>(target.data), target.dtype))
      return error;
    return true;
  }
};

bool isModelFile(const std::string &path, const plan::Plan &plan) {
  return path.empty() || llvm::StringRef(path).ends_with(".onnx") || path == plan.model().path();
}

} // namespace

std::vector<ArrayToWrite> parameterArrays(const plan::Plan &plan, Executor &executor) {
  return arrays(plan, executor, /*gradients=*/false, 1);
}

std::vector<ArrayToWrite> gradientArrays(const plan::Plan &plan, Executor &executor, double scale) {
  return arrays(plan, executor, /*gradients=*/true, scale);
}

llvm::Expected<std::vector<std::string>> loadWeights(const plan::Plan &plan, Executor &executor,
                                                     const WeightsOptions &options) {
  for (const plan::Bucket &bucket : plan.buckets())
    if (DType(bucket.dtype()) != DType::F32 && DType(bucket.dtype()) != DType::F64)
      return userError("plan: bucket \"" + bucket.name() + "\" has parameters of type " +
                       toString(DType(bucket.dtype())) + ", wanted f32 or f64");
  bool fromModel = isModelFile(options.file, plan);
  Sources sources{nullptr, ModelFiles(plan, options.planPath, fromModel ? options.file : "")};
  if (!fromModel) {
    auto file = ArrayFile::open(options.file);
    if (!file)
      return file.takeError();
    sources.file = std::move(*file);
  }

  std::vector<std::string> absent;
  std::vector<ArrayToWrite> targets = parameterArrays(plan, executor);
  for (int i = 0; i < plan.parameters_size(); ++i) {
    auto loaded = sources.load(plan.parameters(i), targets[i]);
    if (!loaded)
      return loaded.takeError();
    if (*loaded)
      continue;
    absent.push_back(targets[i].name);
    if (options.deviation)
      initialize(targets[i], i, *options.deviation, options.seed);
  }
  if (!absent.empty() && !options.deviation)
    return userError(
        (fromModel ? plan.model().path() : options.file) + ": no values for " +
            llvm::Twine(absent.size()) + " of " + llvm::Twine(plan.parameters_size()) +
            " parameters: got none for " + listNames(absent),
        "give --weights FILE.safetensors, or --init-weights normal to start from random ones");
  return absent;
}

} // namespace shardc
