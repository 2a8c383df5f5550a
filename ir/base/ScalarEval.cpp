// SPDX-License-Identifier: Apache-2.0
// Evaluates scalar programs for folding: blocks of elements, one instruction after the other.
#include "ir/base/DTypeDispatch.h"
#include "ir/base/ScalarExpr.h"
#include "ir/base/ScalarMath.h"

namespace shardc {
namespace {

constexpr int64_t kBlock = 256;

/// Values of one instruction for a block; f16 and bf16 as (rounded) float.
struct Register {
  alignas(64) char bytes[kBlock * 8];
  template <typename T> T *as() { return reinterpret_cast<T *>(bytes); }
};

/// Calls f with the C++ type that registers of `dtype` hold.
template <typename F> void withRegisterType(DType dtype, F f) {
  withType(dtype, [&]<typename T>() { f.template operator()<typename ComputeType<T>::Type>(); });
}

/// Walks the elements of a dense operand in the order of the dims that it broadcasts to.
class Cursor {
public:
  Cursor(const Tensor &tensor, llvm::ArrayRef<int64_t> dims)
      : tensor_(tensor), dims_(dims), strides_(dims.size(), 0), index_(dims.size(), 0) {
    Dims own = rowMajorStrides(tensor.dims());
    for (size_t i = 0, offset = dims.size() - own.size(); i < own.size(); ++i)
      strides_[offset + i] = tensor.dims()[i] == 1 ? 0 : own[i];
    dense_ = tensor.dims() == dims;
  }

  void load(Register &out, int64_t n) {
    withType(tensor_.dtype(), [&]<typename T>() {
      using C = typename ComputeType<T>::Type;
      const T *data = tensor_.data<T>();
      C *to = out.as<C>();
      if (dense_) {
        for (int64_t i = 0; i < n; ++i)
          to[i] = C(data[at_ + i]);
        at_ += n;
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        to[i] = C(data[at_]);
        advance();
      }
    });
  }

private:
  void advance() {
    for (size_t d = dims_.size(); d-- > 0;) {
      at_ += strides_[d];
      if (++index_[d] < dims_[d])
        return;
      at_ -= strides_[d] * dims_[d];
      index_[d] = 0;
    }
  }

  const Tensor &tensor_;
  llvm::ArrayRef<int64_t> dims_;
  Dims strides_, index_;
  int64_t at_ = 0;
  bool dense_;
};

template <typename T, typename R, typename F>
void each(Register &out, Register &a, Register &b, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i)
    out.as<R>()[i] = R(f(a.as<T>()[i], b.as<T>()[i]));
}

/// T is the operands' type. Functions of one operand get it twice.
template <typename T>
void compute(ScalarCode code, Register &out, Register &a, Register &b, int64_t n) {
  auto to = [&](auto f) { each<T, T>(out, a, b, n, f); };
  auto test = [&](auto f) { each<T, uint8_t>(out, a, b, n, f); };
  switch (code) {
  case ScalarCode::Add:
    return to([](T x, T y) { return scalar::add(x, y); });
  case ScalarCode::Sub:
    return to([](T x, T y) { return scalar::sub(x, y); });
  case ScalarCode::Mul:
    return to([](T x, T y) { return scalar::mul(x, y); });
  case ScalarCode::Div:
    return to([](T x, T y) { return scalar::div(x, y); });
  case ScalarCode::Mod:
    return to([](T x, T y) { return scalar::mod(x, y); });
  case ScalarCode::Neg:
    return to([](T x, T) { return scalar::neg(x); });
  case ScalarCode::Pow:
    return to([](T x, T y) { return scalar::pow(x, y); });
  case ScalarCode::Max:
    return to([](T x, T y) { return scalar::max(x, y); });
  case ScalarCode::Min:
    return to([](T x, T y) { return scalar::min(x, y); });
  case ScalarCode::Abs:
    return to([](T x, T) { return scalar::abs(x); });
  case ScalarCode::Sign:
    return to([](T x, T) { return scalar::sign(x); });
  case ScalarCode::Equal:
    return test([](T x, T y) { return x == y; });
  case ScalarCode::Less:
    return test([](T x, T y) { return x < y; });
  case ScalarCode::LessEqual:
    return test([](T x, T y) { return x <= y; });
  case ScalarCode::Greater:
    return test([](T x, T y) { return x > y; });
  case ScalarCode::GreaterEqual:
    return test([](T x, T y) { return x >= y; });
  case ScalarCode::And:
    return test([](T x, T y) { return x && y; });
  case ScalarCode::Or:
    return test([](T x, T y) { return x || y; });
  case ScalarCode::Not:
    return test([](T x, T) { return !x; });
  default:
    break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (code) {
    case ScalarCode::Exp:
      return to([](T x, T) { return std::exp(x); });
    case ScalarCode::Log:
      return to([](T x, T) { return std::log(x); });
    case ScalarCode::Sqrt:
      return to([](T x, T) { return std::sqrt(x); });
    case ScalarCode::Sin:
      return to([](T x, T) { return std::sin(x); });
    case ScalarCode::Cos:
      return to([](T x, T) { return std::cos(x); });
    case ScalarCode::Tanh:
      return to([](T x, T) { return std::tanh(x); });
    case ScalarCode::Erf:
      return to([](T x, T) { return std::erf(x); });
    case ScalarCode::Ceil:
      return to([](T x, T) { return std::ceil(x); });
    case ScalarCode::Floor:
      return to([](T x, T) { return std::floor(x); });
    case ScalarCode::Round:
      return to([](T x, T) { return std::nearbyint(x); });
    case ScalarCode::IsNan:
      return test([](T x, T) { return std::isnan(x); });
    case ScalarCode::IsInf:
      return test([](T x, T) { return std::isinf(x); });
    default:
      break;
    }
  }
  assert(false && "a scalar code that the parser does not make for this type");
}

/// Rounds a float register to a 16-bit type where it has one.
template <typename From> void convertTo(DType to, Register &out, Register &a, int64_t n) {
  withType(to, [&]<typename T>() {
    using C = typename ComputeType<T>::Type;
    for (int64_t i = 0; i < n; ++i)
      if (to == DType::Bool)
        out.as<uint8_t>()[i] = a.as<From>()[i] != 0;
      else
        out.as<C>()[i] = C(T(scalar::convert<C>(a.as<From>()[i])));
  });
}

void select(DType dtype, Register &out, Register &condition, Register &yes, Register &no,
            int64_t n) {
  withRegisterType(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < n; ++i)
      out.as<T>()[i] = condition.as<uint8_t>()[i] ? yes.as<T>()[i] : no.as<T>()[i];
  });
}

void run(const ScalarInstr &instr, const ScalarProgram &program, std::vector<Register> &regs,
         std::vector<Cursor> &cursors, Register &out, int64_t n) {
  auto arg = [&](int i) -> Register & {
    return regs[instr.args[i] < 0 ? instr.args[0] : instr.args[i]];
  };
  switch (instr.code) {
  case ScalarCode::Input:
    return cursors[instr.input].load(out, n);
  case ScalarCode::Number:
    return withRegisterType(instr.dtype, [&]<typename T>() {
      std::fill_n(out.as<T>(), n, scalar::convert<T>(instr.number));
    });
  case ScalarCode::Select:
    return select(instr.dtype, out, arg(0), arg(1), arg(2), n);
  case ScalarCode::Convert:
    return withRegisterType(program.code[instr.args[0]].dtype,
                            [&]<typename T>() { convertTo<T>(instr.dtype, out, arg(0), n); });
  case ScalarCode::Keep:
    assert(false && "drawn numbers have no value before the step");
    return;
  default:
    return withRegisterType(program.code[instr.args[0]].dtype,
                            [&]<typename T>() { compute<T>(instr.code, out, arg(0), arg(1), n); });
  }
}

void store(Tensor &tensor, int64_t at, Register &reg, int64_t n) {
  withType(tensor.dtype(), [&]<typename T>() {
    using C = typename ComputeType<T>::Type;
    for (int64_t i = 0; i < n; ++i)
      tensor.mutableData<T>()[at + i] = T(reg.as<C>()[i]);
  });
}

} // namespace

Tensor evaluate(const ScalarProgram &program, llvm::ArrayRef<const Tensor *> inputs,
                llvm::ArrayRef<int64_t> dims) {
  int16_t output = program.outputs.front();
  Tensor result(program.code[output].dtype, dims);
  // An input that two instructions read (in two types, say) is loaded by each: one cursor each.
  std::vector<Cursor> cursors;
  ScalarProgram own = program;
  for (ScalarInstr &instr : own.code)
    if (instr.code == ScalarCode::Input) {
      cursors.emplace_back(*inputs[instr.input], dims);
      instr.input = int64_t(cursors.size()) - 1;
    }
  std::vector<Register> regs(own.code.size());
  int64_t total = result.numElements();
  for (int64_t at = 0; at < total; at += kBlock) {
    int64_t n = std::min(kBlock, total - at);
    for (size_t i = 0; i < own.code.size(); ++i)
      run(own.code[i], own, regs, cursors, regs[i], n);
    store(result, at, regs[output], n);
  }
  return result;
}

} // namespace shardc
