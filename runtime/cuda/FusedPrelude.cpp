// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/FusedPrelude.h"

namespace shardc::cuda {

llvm::StringRef fusedPrelude() {
  static constexpr llvm::StringLiteral kText = R"(
typedef unsigned char u8;
typedef long long i64;
typedef unsigned long long u64;
#define FN __device__ __forceinline__
struct F16 { unsigned short bits; };
struct BF16 { unsigned short bits; };
template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack { T at[N]; };

FN float widen(float a) { return a; }
FN double widen(double a) { return a; }
FN int widen(int a) { return a; }
FN i64 widen(i64 a) { return a; }
FN u8 widen(u8 a) { return a; }
FN float widen(BF16 a) { return __uint_as_float((unsigned)a.bits << 16); }
FN float widen(F16 a) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(a.bits)); return f; }
FN BF16 toBF16(float a) { BF16 b; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(a)); return b; }
FN F16 toF16(float a) { F16 b; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b.bits) : "f"(a)); return b; }
FN void put(float &to, float a) { to = a; }
FN void put(double &to, double a) { to = a; }
FN void put(int &to, int a) { to = a; }
FN void put(i64 &to, i64 a) { to = a; }
FN void put(u8 &to, u8 a) { to = a; }
FN void put(BF16 &to, float a) { to = toBF16(a); }
FN void put(F16 &to, float a) { to = toF16(a); }
// Beside a 0: ptxas makes a fast instruction of two numbers, of one a slow one.
FN float roundBF16(float a) { unsigned r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(a), "f"(0.f)); return __uint_as_float(r); }
FN float roundF16(float a) { return widen(toF16(a)); }

FN float add(float a, float b) { return __fadd_rn(a, b); }
FN double add(double a, double b) { return __dadd_rn(a, b); }
FN int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
FN i64 add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
FN u8 add(u8 a, u8 b) { return (u8)(a + b); }
FN float sub(float a, float b) { return __fsub_rn(a, b); }
FN double sub(double a, double b) { return __dsub_rn(a, b); }
FN int sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
FN i64 sub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
FN u8 sub(u8 a, u8 b) { return (u8)(a - b); }
FN float mul(float a, float b) { return __fmul_rn(a, b); }
FN double mul(double a, double b) { return __dmul_rn(a, b); }
FN int mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
FN i64 mul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
FN u8 mul(u8 a, u8 b) { return (u8)(a * b); }
FN float negated(float a) { return -a; }
FN double negated(double a) { return -a; }
FN int negated(int a) { return sub(0, a); }
FN i64 negated(i64 a) { return sub((i64)0, a); }
FN u8 negated(u8 a) { return (u8)(0 - a); }
FN float divided(float a, float b) { return __fdiv_rn(a, b); }
FN double divided(double a, double b) { return __ddiv_rn(a, b); }
template <typename T> FN T dividedSigned(T a, T b) { return b == 0 ? (T)0 : b == -1 ? negated(a) : (T)(a / b); }
FN int divided(int a, int b) { return dividedSigned(a, b); }
FN i64 divided(i64 a, i64 b) { return dividedSigned(a, b); }
FN u8 divided(u8 a, u8 b) { return b == 0 ? (u8)0 : (u8)(a / b); }
FN float modulo(float a, float b) { return fmodf(a, b); }
FN double modulo(double a, double b) { return fmod(a, b); }
template <typename T> FN T moduloSigned(T a, T b) {
  if (b == 0 || b == -1)
    return 0;
  T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
FN int modulo(int a, int b) { return moduloSigned(a, b); }
FN i64 modulo(i64 a, i64 b) { return moduloSigned(a, b); }
FN u8 modulo(u8 a, u8 b) { return b == 0 ? (u8)0 : (u8)(a % b); }
FN float power(float a, float b) { return powf(a, b); }
FN double power(double a, double b) { return pow(a, b); }
template <typename T> FN T powerOf(T a, T b) {
  T result = 1;
  for (; b != 0; b = (T)(b / 2)) {
    if (b % 2 != 0)
      result = mul(result, a);
    a = mul(a, a);
  }
  return result;
}
template <typename T> FN T powerSigned(T a, T b) {
  return b < 0 ? (a == 1 ? (T)1 : a == -1 ? (T)(b % 2 ? -1 : 1) : (T)0) : powerOf(a, b);
}
FN int power(int a, int b) { return powerSigned(a, b); }
FN i64 power(i64 a, i64 b) { return powerSigned(a, b); }
FN u8 power(u8 a, u8 b) { return powerOf(a, b); }
template <typename T> FN T largest(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> FN T smallest(T a, T b) { return a < b || a != a ? a : b; }
FN float absolute(float a) { return fabsf(a); }
FN double absolute(double a) { return fabs(a); }
FN int absolute(int a) { return a < 0 ? negated(a) : a; }
FN i64 absolute(i64 a) { return a < 0 ? negated(a) : a; }
FN u8 absolute(u8 a) { return a; }
template <typename T> FN T signOf(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }
FN u8 signOf(u8 a) { return a > 0; }
FN float exponential(float a) { return expf(a); }
FN double exponential(double a) { return exp(a); }
FN float logarithm(float a) { return logf(a); }
FN double logarithm(double a) { return log(a); }
FN float root(float a) { return __fsqrt_rn(a); }
FN double root(double a) { return __dsqrt_rn(a); }
FN float sine(float a) { return sinf(a); }
FN double sine(double a) { return sin(a); }
FN float cosine(float a) { return cosf(a); }
FN double cosine(double a) { return cos(a); }
FN float tanhOf(float a) { return tanhf(a); }
FN double tanhOf(double a) { return tanh(a); }
FN float erfOf(float a) { return erff(a); }
FN double erfOf(double a) { return erf(a); }
FN float ceiling(float a) { return ceilf(a); }
FN double ceiling(double a) { return ceil(a); }
FN float floored(float a) { return floorf(a); }
FN double floored(double a) { return floor(a); }
FN float rounded(float a) { return rintf(a); }
FN double rounded(double a) { return rint(a); }
template <typename T> FN u8 isNan(T a) { return a != a; }
FN u8 isInf(float a) { return fabsf(a) == __int_as_float(0x7f800000); }
FN u8 isInf(double a) { return fabs(a) == (double)__int_as_float(0x7f800000); }

// Float to integer truncates and saturates, NaN is 0; integer to integer wraps.
template <typename A> FN int saturateI32(A a) {
  return a != a ? 0 : a <= (A)-2147483648.0 ? -2147483647 - 1 : a < (A)2147483648.0 ? (int)a : 2147483647;
}
template <typename A> FN i64 saturateI64(A a) {
  return a != a ? 0 : a <= (A)-9223372036854775808.0 ? -9223372036854775807ll - 1
                    : a < (A)9223372036854775808.0 ? (i64)a : 9223372036854775807ll;
}
template <typename A> FN u8 saturateU8(A a) { return a != a ? (u8)0 : a <= (A)-1 ? (u8)0 : a < (A)256 ? (u8)(int)a : (u8)255; }

FN void philox(unsigned c0, unsigned c1, unsigned c2, unsigned c3, unsigned k0, unsigned k1, unsigned (&to)[4]) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned a = __umulhi(0xD2511F53u, c0), al = 0xD2511F53u * c0, b = __umulhi(0xCD9E8D57u, c2), bl = 0xCD9E8D57u * c2;
    c0 = b ^ c1 ^ k0;
    c1 = bl;
    c2 = a ^ c3 ^ k1;
    c3 = al;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  to[0] = c0, to[1] = c1, to[2] = c2, to[3] = c3;
}
// 0 or `scale` for the elements first + l, l < N.
template <int N, typename T> FN void keep(T (&to)[N], u64 first, unsigned id, u64 seed, unsigned step, u64 threshold, T scale) {
  unsigned numbers[4];
  if (N >= 4 && first % 4 == 0) {
#pragma unroll
    for (int l = 0; l < N; ++l) {
      const u64 index = first / 4 + l / 4;
      if (l % 4 == 0)
        philox((unsigned)index, (unsigned)(index >> 32), id, step, (unsigned)seed, (unsigned)(seed >> 32), numbers);
      to[l] = numbers[l % 4] >= threshold ? scale : (T)0;
    }
    return;
  }
#pragma unroll 1
  for (int l = 0; l < N; ++l) {
    const u64 index = (first + l) / 4;
    const unsigned at = (unsigned)((first + l) % 4);
    philox((unsigned)index, (unsigned)(index >> 32), id, step, (unsigned)seed, (unsigned)(seed >> 32), numbers);
    const unsigned number = at == 0 ? numbers[0] : at == 1 ? numbers[1] : at == 2 ? numbers[2] : numbers[3];
    const T factor = number >= threshold ? scale : (T)0;
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (k == l)
        to[k] = factor;
  }
}
)";
  return kText;
}

} // namespace shardc::cuda
