// SPDX-License-Identifier: Apache-2.0
// Products of matrices on one thread: oneDNN for f32 where it is there, else an own blocked kernel.
#pragma once

#include <cstdint>

namespace shardc::host {

/// A matrix with element (i, j) at data[i * row + j * column].
template <typename T> struct Matrix {
  const T *data;
  int64_t row, column;
  Matrix from(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
  Matrix transposed() const { return {data, column, row}; }
};

/// c[m, n] = alpha a[m, k] b[k, n] + beta c, where c has rows of stride `rowC` and columns of
/// stride
/// 1. With beta 0 what c holds is not read. Runs on the calling thread. The bits depend on the
/// sizes and layouts only. Any layout of a and b works; one stride should be 1 for speed.
template <typename T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T *c,
          int64_t rowC);

/// The same for a big product, cut into panels that all threads share. The cuts depend on the sizes
/// only, so the number of threads changes no bit.
template <typename T>
void parallelGemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T *c,
                  int64_t rowC);

extern template void gemm(int64_t, int64_t, int64_t, float, Matrix<float>, Matrix<float>, float,
                          float *, int64_t);
extern template void gemm(int64_t, int64_t, int64_t, double, Matrix<double>, Matrix<double>, double,
                          double *, int64_t);
extern template void parallelGemm(int64_t, int64_t, int64_t, float, Matrix<float>, Matrix<float>,
                                  float, float *, int64_t);
extern template void parallelGemm(int64_t, int64_t, int64_t, double, Matrix<double>, Matrix<double>,
                                  double, double *, int64_t);

/// The own kernel; `gemm` takes it where oneDNN cannot serve.
template <typename T>
void blockedGemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T *c,
                 int64_t rowC);
extern template void blockedGemm(int64_t, int64_t, int64_t, float, Matrix<float>, Matrix<float>,
                                 float, float *, int64_t);
extern template void blockedGemm(int64_t, int64_t, int64_t, double, Matrix<double>, Matrix<double>,
                                 double, double *, int64_t);

} // namespace shardc::host
