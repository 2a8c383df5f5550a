// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/Reference.h"
#include "ir/base/Error.h"
#include "ir/base/Half.h"
#include "ir/base/Movement.h"
#include "ir/base/ScalarExpr.h"
#include <cstring>

namespace shardc {

std::vector<double> toDoubles(const Tensor &tensor) {
  std::vector<double> values(tensor.numElements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.asDouble(i);
  return values;
}

std::vector<double> productOperand(const Op &op, const Tensor &tensor) {
  std::vector<double> values = toDoubles(tensor);
  if (op.attrs.getInt("tf32", 0) && tensor.dtype() == DType::F32)
    for (double &value : values)
      value = roundToTf32(float(value));
  return values;
}

template <typename T> static void store(Tensor &tensor, llvm::ArrayRef<double> values) {
  T *out = tensor.mutableData<T>();
  for (size_t i = 0; i < values.size(); ++i)
    out[i] = T(values[i]);
}

Tensor fromDoubles(DType dtype, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<double> values) {
  Tensor tensor(dtype, dims);
  assert(tensor.numElements() == int64_t(values.size()));
  switch (dtype) {
  case DType::F32:
    store<float>(tensor, values);
    break;
  case DType::F64:
    store<double>(tensor, values);
    break;
  case DType::I32:
    store<int32_t>(tensor, values);
    break;
  case DType::I64:
    store<int64_t>(tensor, values);
    break;
  case DType::U8:
    store<uint8_t>(tensor, values);
    break;
  case DType::Bool:
    store<bool>(tensor, values);
    break;
  case DType::F16:
    for (size_t i = 0; i < values.size(); ++i)
      tensor.mutableData<uint16_t>()[i] = floatToHalf(float(values[i]));
    break;
  case DType::BF16:
    for (size_t i = 0; i < values.size(); ++i)
      tensor.mutableData<uint16_t>()[i] = floatToBFloat(float(values[i]));
    break;
  }
  return tensor;
}

Tensor copyOf(const Tensor &tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  std::memcpy(copy.mutableData<char>(), tensor.bytes(), tensor.numBytes());
  return copy;
}

Tensor gatherStrided(const Tensor &tensor, int64_t offset, llvm::ArrayRef<int64_t> dims,
                     llvm::ArrayRef<int64_t> strides) {
  Tensor out(tensor.dtype(), dims);
  int64_t bytes = byteSize(tensor.dtype());
  stridedCopy(out.mutableData<char>(), rowMajorStrides(dims), tensor.data<char>() + offset * bytes,
              strides, dims, bytes);
  return out;
}

Dims broadcastStrides(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> to) {
  Dims own = rowMajorStrides(dims), strides(to.size(), 0);
  for (size_t i = 0, offset = to.size() - dims.size(); i < dims.size(); ++i)
    strides[offset + i] = dims[i] == 1 ? 0 : own[i];
  return strides;
}

Indices indicesOf(const Tensor &tensor) {
  return {tensor.bytes(), tensor.dtype(), tensor.numElements()};
}

llvm::Error indexError(const Tensor &indices, int64_t position, llvm::StringRef wanted) {
  return userError("index out of range: got " + llvm::Twine(indices.asInt(position)) +
                   " at position " + llvm::Twine(position) + ", wanted " + wanted);
}

llvm::Error refuseRandom(const ScalarProgram &program) {
  for (const ScalarInstr &instr : program.code)
    if (instr.code == ScalarCode::Keep)
      return userError("it draws random numbers: it has no value before the step runs");
  return llvm::Error::success();
}

llvm::Expected<Tensors> evaluateOp(const Op &op, TensorArgs operands) {
  const OpDef &def = op.def();
  if (def.evaluate)
    return def.evaluate(op, operands);
  if (!def.scalar)
    return userError(llvm::Twine(def.mnemonic) + ": cannot be evaluated before the step runs");
  llvm::SmallVector<DType> dtypes;
  for (const Tensor *tensor : operands)
    dtypes.push_back(tensor->dtype());
  llvm::SmallVector<NamedNumber> numbers;
  for (auto &[name, value] : op.attrs)
    if (auto *i = std::get_if<int64_t>(&value))
      numbers.push_back({name, double(*i)});
    else if (auto *f = std::get_if<double>(&value))
      numbers.push_back({name, *f});
  const Type &type = op.result()->type();
  llvm::Expected<ScalarProgram> program = parseScalarExpr(def.scalar, dtypes, type.dtype, numbers);
  if (!program)
    return program.takeError();
  if (llvm::Error error = refuseRandom(*program))
    return error;
  return Tensors{evaluate(*program, operands, type.dims)};
}

} // namespace shardc
