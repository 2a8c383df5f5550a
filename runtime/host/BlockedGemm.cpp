// SPDX-License-Identifier: Apache-2.0
// Blocks of a and b are packed into panels that lie as the inner kernel reads them, which keeps
// a tile of c in registers.
#include "runtime/host/Gemm.h"
#include <algorithm>

namespace shardc::host {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif

template <typename T> struct Tile {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(alignof(T))));
  static constexpr int64_t kLanes = kVectorBytes / sizeof(T);
  static constexpr int64_t kRows = 6, kColumns = 2 * kLanes;
  // Packed blocks: a in the second cache level, b in the third. Both on the stack.
  static constexpr int64_t kBlockM = 96, kBlockK = 192, kBlockN = 16 * kColumns;
};

/// Rows of `a` in groups of kRows, each group k-major; missing rows are 0.
template <typename T> void packA(Matrix<T> a, int64_t m, int64_t k, T alpha, T *to) {
  constexpr int64_t kRows = Tile<T>::kRows;
  for (int64_t i = 0; i < m; i += kRows)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t r = 0; r < kRows; ++r)
        *to++ = i + r < m ? alpha * a.data[(i + r) * a.row + p * a.column] : T(0);
}

template <typename T> void packB(Matrix<T> b, int64_t k, int64_t n, T *to) {
  constexpr int64_t kColumns = Tile<T>::kColumns;
  for (int64_t j = 0; j < n; j += kColumns)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t c = 0; c < kColumns; ++c)
        *to++ = j + c < n ? b.data[p * b.row + (j + c) * b.column] : T(0);
}

/// tile[kRows, kColumns] = packed a times packed b.
template <typename T> void multiply(int64_t k, const T *a, const T *b, T *tile) {
  using Vector = typename Tile<T>::Vector;
  constexpr int64_t kRows = Tile<T>::kRows, kLanes = Tile<T>::kLanes;
  Vector sums[kRows][2] = {};
  for (int64_t p = 0; p < k; ++p) {
    Vector low = *reinterpret_cast<const Vector *>(b);
    Vector high = *reinterpret_cast<const Vector *>(b + kLanes);
    for (int64_t r = 0; r < kRows; ++r) {
      sums[r][0] += a[r] * low;
      sums[r][1] += a[r] * high;
    }
    a += kRows;
    b += 2 * kLanes;
  }
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t h = 0; h < 2; ++h)
      *reinterpret_cast<Vector *>(tile + (2 * r + h) * kLanes) = sums[r][h];
}

} // namespace

template <typename T>
void blockedGemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T *c,
                 int64_t rowC) {
  using S = Tile<T>;
  alignas(64) T packedA[S::kBlockM * S::kBlockK], packedB[S::kBlockK * S::kBlockN];
  alignas(64) T tile[S::kRows * S::kColumns];
  if (beta != T(1))
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        c[i * rowC + j] = beta == T(0) ? T(0) : beta * c[i * rowC + j];
  for (int64_t j0 = 0; j0 < n; j0 += S::kBlockN)
    for (int64_t p0 = 0; p0 < k; p0 += S::kBlockK) {
      int64_t blockN = std::min(S::kBlockN, n - j0), blockK = std::min(S::kBlockK, k - p0);
      packB(b.from(p0, j0), blockK, blockN, packedB);
      for (int64_t i0 = 0; i0 < m; i0 += S::kBlockM) {
        int64_t blockM = std::min(S::kBlockM, m - i0);
        packA(a.from(i0, p0), blockM, blockK, alpha, packedA);
        for (int64_t j = 0; j < blockN; j += S::kColumns)
          for (int64_t i = 0; i < blockM; i += S::kRows) {
            multiply(blockK, packedA + i * blockK, packedB + j * blockK, tile);
            int64_t rows = std::min(S::kRows, blockM - i),
                    columns = std::min(S::kColumns, blockN - j);
            T *target = c + (i0 + i) * rowC + j0 + j;
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t l = 0; l < columns; ++l)
                target[r * rowC + l] += tile[r * S::kColumns + l];
          }
      }
    }
}

template void blockedGemm(int64_t, int64_t, int64_t, float, Matrix<float>, Matrix<float>, float,
                          float *, int64_t);
template void blockedGemm(int64_t, int64_t, int64_t, double, Matrix<double>, Matrix<double>, double,
                          double *, int64_t);

} // namespace shardc::host
