// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/FusedLoops.h"
#include "ir/base/DTypeDispatch.h"
#include "ir/base/ScalarMath.h"
#include "runtime/host/Simd.h"
#include "runtime/host/VectorMath.h"
#include <type_traits>

namespace shardc::host {
namespace {

// Independent: y is a, b or c itself or apart from them, never shifted.
template <typename R, typename A, auto F>
void unary(void *yp, const void *ap, const void *, const void *, int64_t n) {
  R *y = static_cast<R *>(yp);
  const A *a = static_cast<const A *>(ap);
  SHARDC_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = R(F(a[i]));
}

template <typename R, typename A, auto F>
void binary(void *yp, const void *ap, const void *bp, const void *, int64_t n) {
  R *y = static_cast<R *>(yp);
  const A *a = static_cast<const A *>(ap), *b = static_cast<const A *>(bp);
  SHARDC_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = R(F(a[i], b[i]));
}

template <typename T>
void select(void *yp, const void *ap, const void *bp, const void *cp, int64_t n) {
  T *y = static_cast<T *>(yp);
  const uint8_t *a = static_cast<const uint8_t *>(ap);
  const T *b = static_cast<const T *>(bp), *c = static_cast<const T *>(cp);
  SHARDC_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    T yes = b[i], no = c[i];
    y[i] = a[i] ? yes : no;
  }
}

template <typename T> Loop compareLoop(ScalarCode code) {
  using B = uint8_t;
  switch (code) {
  case ScalarCode::Equal:
    return binary<B, T, [](T a, T b) { return a == b; }>;
  case ScalarCode::Less:
    return binary<B, T, [](T a, T b) { return (a < b); }>;
  case ScalarCode::LessEqual:
    return binary<B, T, [](T a, T b) { return (a <= b); }>;
  case ScalarCode::Greater:
    return binary<B, T, [](T a, T b) { return (a > b); }>;
  case ScalarCode::GreaterEqual:
    return binary<B, T, [](T a, T b) { return (a >= b); }>;
  default:
    return nullptr;
  }
}

template <typename T> Loop floatLoop(ScalarCode code) {
  switch (code) {
  case ScalarCode::Add:
    return binary<T, T, [](T a, T b) { return a + b; }>;
  case ScalarCode::Sub:
    return binary<T, T, [](T a, T b) { return a - b; }>;
  case ScalarCode::Mul:
    return binary<T, T, [](T a, T b) { return a * b; }>;
  case ScalarCode::Div:
    return binary<T, T, [](T a, T b) { return a / b; }>;
  case ScalarCode::Mod:
    return binary<T, T, [](T a, T b) { return std::fmod(a, b); }>;
  case ScalarCode::Pow:
    return binary<T, T, [](T a, T b) { return std::pow(a, b); }>;
  // A NaN on either side is the result.
  case ScalarCode::Max:
    return binary<T, T, [](T a, T b) { return (a > b) | (a != a) ? a : b; }>;
  case ScalarCode::Min:
    return binary<T, T, [](T a, T b) { return (a < b) | (a != a) ? a : b; }>;
  case ScalarCode::Neg:
    return unary<T, T, [](T a) { return -a; }>;
  case ScalarCode::Abs:
    return unary<T, T, [](T a) { return std::fabs(a); }>;
  case ScalarCode::Sign:
    return unary<T, T, [](T a) { return (a > 0) ? T(1) : (a < 0) ? T(-1) : a; }>;
  case ScalarCode::Exp:
    return unary<T, T, [](T a) { return exp(a); }>;
  case ScalarCode::Log:
    return unary<T, T, [](T a) { return log(a); }>;
  case ScalarCode::Sqrt:
    return unary<T, T, [](T a) { return std::sqrt(a); }>;
  case ScalarCode::Sin:
    return unary<T, T, [](T a) { return std::sin(a); }>;
  case ScalarCode::Cos:
    return unary<T, T, [](T a) { return std::cos(a); }>;
  case ScalarCode::Tanh:
    return unary<T, T, [](T a) { return tanh(a); }>;
  case ScalarCode::Erf:
    return unary<T, T, [](T a) { return erf(a); }>;
  case ScalarCode::Ceil:
    return unary<T, T, [](T a) { return std::ceil(a); }>;
  case ScalarCode::Floor:
    return unary<T, T, [](T a) { return std::floor(a); }>;
  case ScalarCode::Round:
    return unary<T, T, [](T a) { return std::rint(a); }>;
  case ScalarCode::IsNan:
    return unary<uint8_t, T, [](T a) { return a != a; }>;
  case ScalarCode::IsInf:
    return unary<uint8_t, T,
                 [](T a) { return std::fabs(a) == std::numeric_limits<T>::infinity(); }>;
  default:
    return compareLoop<T>(code);
  }
}

template <typename T> Loop integerLoop(ScalarCode code) {
  switch (code) {
  case ScalarCode::Add:
    return binary<T, T, scalar::add<T>>;
  case ScalarCode::Sub:
    return binary<T, T, scalar::sub<T>>;
  case ScalarCode::Mul:
    return binary<T, T, scalar::mul<T>>;
  case ScalarCode::Div:
    return binary<T, T, scalar::div<T>>;
  case ScalarCode::Mod:
    return binary<T, T, scalar::mod<T>>;
  case ScalarCode::Pow:
    return binary<T, T, scalar::pow<T>>;
  case ScalarCode::Max:
    return binary<T, T, scalar::max<T>>;
  case ScalarCode::Min:
    return binary<T, T, scalar::min<T>>;
  case ScalarCode::Neg:
    return unary<T, T, scalar::neg<T>>;
  case ScalarCode::Abs:
    return unary<T, T, scalar::abs<T>>;
  case ScalarCode::Sign:
    return unary<T, T, scalar::sign<T>>;
  default:
    return compareLoop<T>(code);
  }
}

Loop boolLoop(ScalarCode code) {
  using B = uint8_t;
  switch (code) {
  case ScalarCode::And:
    return binary<B, B, [](B a, B b) { return (a != 0) & (b != 0); }>;
  case ScalarCode::Or:
    return binary<B, B, [](B a, B b) { return (a != 0) | (b != 0); }>;
  case ScalarCode::Not:
    return unary<B, B, [](B a) { return a == 0; }>;
  case ScalarCode::Max:
    return binary<B, B, [](B a, B b) { return (a != 0) | (b != 0); }>;
  case ScalarCode::Min:
    return binary<B, B, [](B a, B b) { return (a != 0) & (b != 0); }>;
  default:
    return compareLoop<B>(code);
  }
}

/// 16-bit floats go through f32, on either side.
template <typename A> Loop convertLoop(DType to) {
  using C = typename ComputeType<A>::Type;
  switch (to) {
  case DType::F32:
    return unary<float, A, [](A a) { return float(C(a)); }>;
  case DType::F64:
    return unary<double, A, [](A a) { return double(C(a)); }>;
  case DType::F16:
    return unary<HalfValue, A, [](A a) { return float(C(a)); }>;
  case DType::BF16:
    return unary<BFloatValue, A, [](A a) { return float(C(a)); }>;
  case DType::I32:
    return unary<int32_t, A, [](A a) { return scalar::convert<int32_t, C>(C(a)); }>;
  case DType::I64:
    return unary<int64_t, A, [](A a) { return scalar::convert<int64_t, C>(C(a)); }>;
  case DType::U8:
    return unary<uint8_t, A, [](A a) { return scalar::convert<uint8_t, C>(C(a)); }>;
  case DType::Bool:
    return unary<uint8_t, A, [](A a) { return C(a) != C(0); }>;
  }
  return nullptr;
}

/// Calls f with a null pointer of the C++ type of `dtype`; 16-bit floats are not computed here.
template <typename F> Loop withNumber(DType dtype, F f) {
  switch (dtype) {
  case DType::F32:
    return f((float *)nullptr);
  case DType::F64:
    return f((double *)nullptr);
  case DType::I32:
    return f((int32_t *)nullptr);
  case DType::I64:
    return f((int64_t *)nullptr);
  case DType::U8:
  case DType::Bool:
    return f((uint8_t *)nullptr);
  default:
    return nullptr;
  }
}

template <typename T> Loop powLoop(double e) {
  if (e == 1)
    return unary<T, T, [](T a) { return a; }>;
  if (e == 2)
    return unary<T, T, [](T a) { return a * a; }>;
  if (e == 3)
    return unary<T, T, [](T a) { return a * a * a; }>;
  if (e == 0.5)
    return unary<T, T, [](T a) { return std::sqrt(a); }>;
  if (e == -0.5)
    return unary<T, T, [](T a) { return T(1) / std::sqrt(a); }>;
  if (e == -1)
    return unary<T, T, [](T a) { return T(1) / a; }>;
  if (e == -2)
    return unary<T, T, [](T a) { return T(1) / (a * a); }>;
  return nullptr;
}

} // namespace

Loop findLoop(ScalarCode code, DType operand, DType result) {
  if (code == ScalarCode::Convert)
    return operand == DType::F16    ? convertLoop<HalfValue>(result)
           : operand == DType::BF16 ? convertLoop<BFloatValue>(result)
                                    : withNumber(operand, [&](auto *t) {
                                        return convertLoop<std::remove_pointer_t<decltype(t)>>(result);
                                      });
  if (code == ScalarCode::Select)
    return withNumber(result,
                    [](auto *t) -> Loop { return select<std::remove_pointer_t<decltype(t)>>; });
  if (operand == DType::Bool)
    return boolLoop(code);
  return withNumber(operand, [&](auto *t) {
    using T = std::remove_pointer_t<decltype(t)>;
    if constexpr (std::is_floating_point_v<T>)
      return floatLoop<T>(code);
    else
      return integerLoop<T>(code);
  });
}

Loop findPowLoop(double exponent, DType dtype) {
  return dtype == DType::F32   ? powLoop<float>(exponent)
         : dtype == DType::F64 ? powLoop<double>(exponent)
                               : nullptr;
}

void fillRegister(void *y, DType dtype, double value, int64_t n) {
  switch (dtype) {
  case DType::F32:
    std::fill_n(static_cast<float *>(y), n, float(value));
    break;
  case DType::F64:
    std::fill_n(static_cast<double *>(y), n, value);
    break;
  case DType::F16:
    std::fill_n(static_cast<HalfValue *>(y), n, HalfValue(float(value)));
    break;
  case DType::BF16:
    std::fill_n(static_cast<BFloatValue *>(y), n, BFloatValue(float(value)));
    break;
  case DType::I32:
    std::fill_n(static_cast<int32_t *>(y), n, scalar::convert<int32_t>(value));
    break;
  case DType::I64:
    std::fill_n(static_cast<int64_t *>(y), n, scalar::convert<int64_t>(value));
    break;
  case DType::U8:
    std::fill_n(static_cast<uint8_t *>(y), n, scalar::convert<uint8_t>(value));
    break;
  default:
    std::fill_n(static_cast<uint8_t *>(y), n, uint8_t(value != 0));
    break;
  }
}

} // namespace shardc::host
