// SPDX-License-Identifier: Apache-2.0
#include "runtime/SaveWeights.h"
#include "runtime/BucketSlices.h"
#include "runtime/Convert.h"
#include "runtime/Safetensors.h"
#include "runtime/comm/Communicator.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

namespace shardc {
namespace {

enum class Kind { Parameters, Gradients };

struct Content {
  std::vector<const plan::Parameter *> parameters; ///< by bucket, then offset: the order in which they pass by
  std::vector<ArrayInfo> arrays;
};

bool isWanted(const plan::Bucket &bucket, const plan::Parameter &parameter, Kind kind) {
  return kind == Kind::Parameters ? bucket.parameter_buffer() >= 0 || bucket.has_master_buffer()
                                  : bucket.gradient_buffer() >= 0 && parameter.trainable();
}

Content contentOf(const plan::Plan &plan, Kind kind) {
  Content content;
  for (const plan::Parameter &parameter : plan.parameters())
    if (isWanted(plan.buckets(parameter.bucket()), parameter, kind))
      content.parameters.push_back(&parameter);
  std::stable_sort(content.parameters.begin(), content.parameters.end(),
                   [](const plan::Parameter *a, const plan::Parameter *b) {
                     return std::pair(a->bucket(), a->offset()) < std::pair(b->bucket(), b->offset());
                   });
  for (const plan::Parameter *parameter : content.parameters)
    content.arrays.push_back({parameter->name(), wideType(DType(plan.buckets(parameter->bucket()).dtype())),
                              Dims(parameter->dims().begin(), parameter->dims().end())});
  return content;
}

template <typename T>
void writeScaled(llvm::raw_ostream &os, const char *data, int64_t count, double scale) {
  const T *elements = reinterpret_cast<const T *>(data);
  T chunk[4096];
  for (int64_t i = 0; i < count; i += 4096) {
    int64_t n = std::min<int64_t>(4096, count - i);
    for (int64_t j = 0; j < n; ++j)
      chunk[j] = T(elements[i + j] * scale);
    os.write(reinterpret_cast<const char *>(chunk), n * sizeof(T));
  }
}

/// 16-bit floats are written as f32.
void writeWidened(llvm::raw_ostream &os, const char *data, int64_t count, DType dtype, double scale) {
  float chunk[4096];
  for (int64_t i = 0; i < count; i += 4096) {
    int64_t n = std::min<int64_t>(4096, count - i);
    convertElements(data + i * byteSize(dtype), dtype, chunk, DType::F32, n);
    writeScaled<float>(os, reinterpret_cast<const char *>(chunk), n, scale);
  }
}

void writeElements(llvm::raw_ostream &os, const char *data, int64_t count, DType dtype, double scale) {
  if (isHalf(dtype))
    writeWidened(os, data, count, dtype, scale);
  else if (scale == 1)
    os.write(data, count * byteSize(dtype));
  else if (dtype == DType::F32)
    writeScaled<float>(os, data, count, scale);
  else
    writeScaled<double>(os, data, count, scale);
}

/// Puts the arrays of one bucket into `os` (null on ranks other than 0).
llvm::Error streamBucket(const plan::Plan &plan, Executor &executor, Communicator &communicator, int index, Kind kind,
                         llvm::ArrayRef<const plan::Parameter *> parameters, double scale, llvm::raw_ostream *os) {
  const plan::Bucket &bucket = plan.buckets(index);
  BucketPart held = kind == Kind::Parameters ? heldParameters(plan, executor, bucket)
                                             : heldGradients(plan, executor, bucket);
  auto write = [&](const char *data, int64_t first, int64_t count) {
    for (const plan::Parameter *parameter : parameters) {
      int64_t begin = parameter->offset();
      int64_t end = begin + numElements(llvm::ArrayRef<int64_t>(parameter->dims().data(), parameter->dims_size()));
      begin = std::max(begin, first);
      end = std::min(end, first + count);
      if (begin < end)
        writeElements(*os, data + (begin - first) * byteSize(held.dtype), end - begin, held.dtype, scale);
    }
  };
  return visitBucket(bucket, held, communicator, write);
}

llvm::Error save(const plan::Plan &plan, Executor &executor, Communicator &communicator, llvm::StringRef path, Kind kind,
                 double scale) {
  Content content = contentOf(plan, kind);
  auto stream = [&](llvm::raw_ostream *os) -> llvm::Error {
    llvm::ArrayRef<const plan::Parameter *> rest = content.parameters;
    while (!rest.empty()) {
      int bucket = rest[0]->bucket();
      auto ours = rest.take_while([&](const plan::Parameter *p) { return int(p->bucket()) == bucket; });
      if (llvm::Error error = streamBucket(plan, executor, communicator, bucket, kind, ours, scale, os))
        return error;
      rest = rest.drop_front(ours.size());
    }
    return llvm::Error::success();
  };
  if (communicator.rank() != 0)
    return stream(nullptr);
  return streamSafetensors(path, content.arrays, [&](llvm::raw_ostream &os) { return stream(&os); });
}

} // namespace

llvm::Error saveParameters(const plan::Plan &plan, Executor &executor, Communicator &communicator, llvm::StringRef path) {
  return save(plan, executor, communicator, path, Kind::Parameters, 1);
}

llvm::Error saveGradients(const plan::Plan &plan, Executor &executor, Communicator &communicator, llvm::StringRef path,
                          double scale) {
  return save(plan, executor, communicator, path, Kind::Gradients, scale);
}

uint64_t parameterFileSize(const plan::Plan &plan) { return safetensorsSize(contentOf(plan, Kind::Parameters).arrays); }

} // namespace shardc
