// SPDX-License-Identifier: Apache-2.0
// Products by warpgroups (sm_90a): four warps multiply tiles that lie in shared memory, while they do other things.
//
// A tile has rows of 64 16-bit elements (128 bytes) and begins at a multiple of 1024 bytes; the 16 bytes c of row r lie
// at c ^ (r % 8) of the row. Accumulators are as with multiplyAdd: warp m of the four has rows 16 m and on, lane l holds
// x[n][e] = element (l / 4 + 8 (e / 2), 8 n + 2 (l % 4) + e % 2) of them.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace shardc::cuda {

constexpr int kWarpgroup = 128;

/// Names the part of a tile from `at` on, for the products below: 16 columns of its rows from a multiple of 16 columns,
/// or 16 of its rows from a multiple of 8.
__device__ inline uint64_t matrixAt(const void *at) {
  const uint64_t address = uint32_t(__cvta_generic_to_shared(at));
  constexpr uint64_t kEightRows = 1024 >> 4, kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | uint64_t(1) << 16 | kEightRows << 32 | kSwizzle128 << 62;
}
/// `bytes` further on.
__device__ inline uint64_t further(uint64_t matrix, int bytes) { return matrix + (bytes >> 4); }

/// Before the first product that reads registers which the thread wrote, or adds to such.
__device__ inline void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// The products since the last call become one group.
__device__ inline void commitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Until at most kLeft groups are under way.
template <int kLeft> __device__ inline void waitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
/// Keeps the compiler from moving uses of x over this point, which it does not know to wait for products.
template <int N> __device__ inline void pinned(float (&x)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      asm volatile("" : "+f"(x[n][e])::"memory");
}
/// What the thread wrote to shared memory (its own copies included, once they are done) becomes visible to products
/// behind the next barrier.
__device__ inline void showToProducts() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define SHARDC_R8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SHARDC_F4(x) "+f"((x)[0]), "+f"((x)[1]), "+f"((x)[2]), "+f"((x)[3])
#define SHARDC_R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define SHARDC_F32(x, n)                                                                                               \
  SHARDC_F4((x)[n]), SHARDC_F4((x)[n + 1]), SHARDC_F4((x)[n + 2]), SHARDC_F4((x)[n + 3]), SHARDC_F4((x)[n + 4]),       \
      SHARDC_F4((x)[n + 5]), SHARDC_F4((x)[n + 6]), SHARDC_F4((x)[n + 7])
#define SHARDC_R32                                                                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "     \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define SHARDC_R64                                                                                                     \
  SHARDC_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "  \
             "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// A product of m64nNk16: `registers` of x, then the operands of the instruction by number and by value.
#define SHARDC_TEXT(type, size, registers, factors, adds, flags)                                                       \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " adds ", 0;\n"                                                                    \
  "wgmma.mma_async.sync.aligned.m64n" size "k16.f32." type "." type " {" registers "}, " factors ", p, 1, 1, " flags   \
  ";\n}"
#define SHARDC_PRODUCT(size, registers, factors, adds, flags, ...)                                                     \
  if constexpr (std::is_same_v<T, __half>)                                                                             \
    asm volatile(SHARDC_TEXT("f16", size, registers, factors, adds, flags) : __VA_ARGS__);                             \
  else                                                                                                                 \
    asm volatile(SHARDC_TEXT("bf16", size, registers, factors, adds, flags) : __VA_ARGS__)

/// x[64, 8 N] = a b, plus x if `adds`. kColumnsA: `a` is given as 16 rows of the tile of its transpose; kColumnsB: `b`
/// [16, 8 N] is given as 16 rows of its tile, else as 16 columns of the tile of its transpose. T: bf16 or f16.
template <typename T, bool kColumnsA, bool kColumnsB>
__device__ inline void multiply(float (&x)[2][4], uint64_t a, uint64_t b, bool adds) {
  SHARDC_PRODUCT("16", SHARDC_R8, "%8, %9", "%10", "%11, %12", SHARDC_F4(x[0]), SHARDC_F4(x[1])
                 : "l"(a), "l"(b), "r"(int(adds)), "n"(int(kColumnsA)), "n"(int(kColumnsB)));
}
template <typename T, bool kColumnsA, bool kColumnsB>
__device__ inline void multiply(float (&x)[4][4], uint64_t a, uint64_t b, bool adds) {
  SHARDC_PRODUCT("32", SHARDC_R16, "%16, %17", "%18", "%19, %20",
                 SHARDC_F4(x[0]), SHARDC_F4(x[1]), SHARDC_F4(x[2]), SHARDC_F4(x[3])
                 : "l"(a), "l"(b), "r"(int(adds)), "n"(int(kColumnsA)), "n"(int(kColumnsB)));
}
template <typename T, bool kColumnsA, bool kColumnsB>
__device__ inline void multiply(float (&x)[8][4], uint64_t a, uint64_t b, bool adds) {
  SHARDC_PRODUCT("64", SHARDC_R32, "%32, %33", "%34", "%35, %36", SHARDC_F32(x, 0)
                 : "l"(a), "l"(b), "r"(int(adds)), "n"(int(kColumnsA)), "n"(int(kColumnsB)));
}
template <typename T, bool kColumnsA, bool kColumnsB>
__device__ inline void multiply(float (&x)[16][4], uint64_t a, uint64_t b, bool adds) {
  SHARDC_PRODUCT("128", SHARDC_R64, "%64, %65", "%66", "%67, %68", SHARDC_F32(x, 0), SHARDC_F32(x, 8)
                 : "l"(a), "l"(b), "r"(int(adds)), "n"(int(kColumnsA)), "n"(int(kColumnsB)));
}
/// The same with `a` in registers, as with multiplyAdd.
template <typename T, bool kColumnsB>
__device__ inline void multiply(float (&x)[8][4], const uint32_t (&a)[4], uint64_t b, bool adds) {
  SHARDC_PRODUCT("64", SHARDC_R32, "{%32, %33, %34, %35}, %36", "%37", "%38", SHARDC_F32(x, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(adds)), "n"(int(kColumnsB)));
}
#undef SHARDC_PRODUCT
#undef SHARDC_TEXT
#undef SHARDC_F4
#undef SHARDC_F32
#undef SHARDC_R16
#undef SHARDC_R8
#undef SHARDC_R32
#undef SHARDC_R64

} // namespace shardc::cuda
