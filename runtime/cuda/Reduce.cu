// SPDX-License-Identifier: Apache-2.0
// Each result is folded by a row of threads, or by a cluster of blocks where there are few results; results
// that lie side by side in x are folded together, so that loads are wide.
#include "runtime/cuda/Cluster.cuh"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/ReduceLaunch.h"
#include "runtime/cuda/Rows.cuh"

namespace shardc::cuda {
namespace {

/// An integer of the type that the arguments name: i32, i64 or u8.
struct AnyInteger {};

template <typename T> struct Access {
  using Value = Compute<T>;
  static SHARDC_DEVICE Value load(const ReduceArgs &a, long long i) {
    return widen(static_cast<const T *>(a.x)[i]);
  }
  template <typename C> static SHARDC_DEVICE void store(const ReduceArgs &a, long long i, C value) {
    static_cast<T *>(a.y)[i] = narrow<T>(Value(value));
  }
};
template <> struct Access<AnyInteger> {
  using Value = long long;
  static SHARDC_DEVICE Value load(const ReduceArgs &a, long long i) {
    return a.type == ElementType::I64   ? static_cast<const long long *>(a.x)[i]
           : a.type == ElementType::I32 ? (long long)static_cast<const int *>(a.x)[i]
                                        : (long long)static_cast<const unsigned char *>(a.x)[i];
  }
  template <typename C> static SHARDC_DEVICE void store(const ReduceArgs &a, long long i, C value) {
    if (a.type == ElementType::I64)
      static_cast<long long *>(a.y)[i] = (long long)value;
    else if (a.type == ElementType::I32)
      static_cast<int *>(a.y)[i] = int(value);
    else
      static_cast<unsigned char *>(a.y)[i] = (unsigned char)value;
  }
};

/// Sums and products are kept in double, those of integers wrap around.
template <typename V> struct WideOf { using Type = double; };
template <> struct WideOf<long long> { using Type = unsigned long long; };

struct SumFold {
  template <typename V> using Acc = typename WideOf<V>::Type;
  template <typename V> static SHARDC_DEVICE Acc<V> first(ElementType) { return 0; }
  template <typename A> SHARDC_DEVICE A operator()(A a, A b) const { return a + b; }
};
struct ProdFold {
  template <typename V> using Acc = typename WideOf<V>::Type;
  template <typename V> static SHARDC_DEVICE Acc<V> first(ElementType) { return 1; }
  template <typename A> SHARDC_DEVICE A operator()(A a, A b) const { return a * b; }
};
/// Largest (with kSign -1: smallest); a NaN is the result.
template <int kSign> struct ExtremeFold {
  template <typename V> using Acc = V;
  template <typename V> static SHARDC_DEVICE V first(ElementType type) {
    if constexpr (sizeof(V) == 8 && V(0.5) == V(0)) // integers
      return type == ElementType::U8    ? (kSign > 0 ? 0 : 255)
             : type == ElementType::I32 ? (kSign > 0 ? -2147483648ll : 2147483647ll)
                                        : (kSign > 0 ? -9223372036854775807ll - 1 : 9223372036854775807ll);
    else
      return kSign > 0 ? V(-__int_as_float(0x7f800000)) : V(__int_as_float(0x7f800000));
  }
  template <typename A> SHARDC_DEVICE A operator()(A a, A b) const {
    return (kSign > 0 ? a > b : a < b) || a != a ? a : b;
  }
};

constexpr int kThreads = 256;

/// Cluster rank 0 has the result of all blocks, for thread `index` < places.
template <typename A, typename Fold>
SHARDC_DEVICE A joinCluster(A value, Fold fold, const A *shared, int index) {
  const unsigned blocks = clusterSize();
  for (unsigned rank = 1; rank < blocks; ++rank)
    value = fold(value, sharedOf(shared, rank)[index]);
  return value;
}

template <typename T, typename Fold> __global__ void reduceRows(ReduceArgs a) {
  awaitStream();
  using V = typename Access<T>::Value;
  using A = typename Fold::template Acc<V>;
  __shared__ A room[kMaxRowWarps], part[1];
  const Fold fold;
  const bool shares = a.parts > 1;
  const long long step = (long long)blockDim.x * a.parts;
  const long long first = (shares ? (long long)clusterRank() * blockDim.x : 0) + threadIdx.x;
  for (long long r = (long long)(blockIdx.x / a.parts) * blockDim.y + threadIdx.y; r < a.results;
       r += (long long)(gridDim.x / a.parts) * blockDim.y) {
    const long long start = a.kept.offset(r);
    A acc = Fold::template first<V>(a.type);
#pragma unroll 4
    for (long long i = first; i < a.addends; i += step)
      acc = fold(acc, A(Access<T>::load(a, start + a.reduced.offset(i))));
    acc = joinRow(acc, fold, room);
    if (shares) {
      if (threadIdx.x == 0)
        part[0] = acc;
      clusterBarrier();
      if (threadIdx.x == 0 && clusterRank() == 0)
        acc = joinCluster(acc, fold, part, 0);
    }
    if (threadIdx.x == 0 && (!shares || clusterRank() == 0))
      Access<T>::store(a, r, acc);
    if (shares)
      clusterBarrier(); // the others' parts have been read
  }
}

// threadIdx.x: a column or kWidth of them; threadIdx.y: a part of the addends.
template <typename T, typename Fold, int kWidth, int kAcross> __global__ void reduceColumns(ReduceArgs a) {
  awaitStream();
  using V = typename Access<T>::Value;
  using A = typename Fold::template Acc<V>;
  constexpr int kTile = kWidth * kAcross, kParts = kThreads / kAcross;
  __shared__ A room[kParts][kTile];
  const Fold fold;
  const long long tiles = (a.columns + kTile - 1) / kTile, unit = blockIdx.x / a.parts;
  const long long row = unit / tiles * a.columns, column = unit % tiles * kTile + threadIdx.x * kWidth;
  const long long start = a.kept.offset(row) + column;
  const long long first = (long long)(a.parts > 1 ? clusterRank() : 0) * kParts + threadIdx.y;
  A acc[kWidth];
#pragma unroll
  for (int l = 0; l < kWidth; ++l)
    acc[l] = Fold::template first<V>(a.type);
  if (column < a.columns) {
#pragma unroll 4
    for (long long i = first; i < a.addends; i += (long long)kParts * a.parts) {
      const long long at = start + a.reduced.offset(i);
      if constexpr (kWidth > 1) {
        V values[kWidth];
        loadPack<kWidth>(static_cast<const T *>(a.x) + at, values);
#pragma unroll
        for (int l = 0; l < kWidth; ++l)
          acc[l] = fold(acc[l], A(values[l]));
      } else {
        acc[0] = fold(acc[0], A(Access<T>::load(a, at)));
      }
    }
  }
#pragma unroll
  for (int l = 0; l < kWidth; ++l)
    room[threadIdx.y][threadIdx.x * kWidth + l] = acc[l];
  __syncthreads();
  const int thread = threadIdx.y * kAcross + threadIdx.x;
  const bool mine = thread < kTile;
  A sum = Fold::template first<V>(a.type);
  if (mine) {
    sum = room[0][thread];
    for (int p = 1; p < kParts; ++p)
      sum = fold(sum, room[p][thread]);
    room[0][thread] = sum;
  }
  const long long result = unit % tiles * kTile + thread;
  if (a.parts > 1) {
    clusterBarrier();
    if (clusterRank() == 0 && mine)
      sum = joinCluster(sum, fold, room[0], thread);
    clusterBarrier();
    if (clusterRank() != 0)
      return;
  }
  if (mine && result < a.columns)
    Access<T>::store(a, row + result, sum);
}

template <typename T, typename Fold, int kWidth, int kAcross>
cudaError_t columns(const ReduceArgs &a, cudaStream_t stream) {
  constexpr int kTile = kWidth * kAcross;
  const long long units = a.results / a.columns * ((a.columns + kTile - 1) / kTile);
  return enqueueClusters(reduceColumns<T, Fold, kWidth, kAcross>, a.parts, unsigned(units * a.parts),
                         dim3(kAcross, kThreads / kAcross), 0, stream, a);
}

template <typename T, typename Fold> cudaError_t rows(const ReduceArgs &a, cudaStream_t stream) {
  const bool narrow = a.addends <= 512 && a.parts == 1;
  const dim3 block = narrow ? dim3(32, kThreads / 32) : dim3(kThreads, 1);
  const unsigned grid = gridFor(a.results, block.y) * a.parts;
  return enqueueClusters(reduceRows<T, Fold>, a.parts, grid, block, 0, stream, a);
}

template <typename T, typename Fold> cudaError_t reduce(const ReduceArgs &a, cudaStream_t stream) {
  if (a.columns == 0)
    return rows<T, Fold>(a, stream);
  return columns<T, Fold, 1, 32>(a, stream);
}

template <typename Fold> cudaError_t byType(const ReduceArgs &a, cudaStream_t stream) {
  switch (a.type) {
  case ElementType::F32:
    return reduce<float, Fold>(a, stream);
  case ElementType::F64:
    return reduce<double, Fold>(a, stream);
  case ElementType::F16:
    return reduce<__half, Fold>(a, stream);
  case ElementType::BF16:
    return reduce<__nv_bfloat16, Fold>(a, stream);
  default:
    return reduce<AnyInteger, Fold>(a, stream);
  }
}

} // namespace

cudaError_t launchReduce(const ReduceArgs &a, cudaStream_t stream) {
  if (a.vectors && a.columns > 0 && a.fold == FoldKind::Sum) {
    if (a.type == ElementType::F32)
      return columns<float, SumFold, kVector<float>, 8>(a, stream);
    if (a.type == ElementType::F16)
      return columns<__half, SumFold, kVector<__half>, 8>(a, stream);
    if (a.type == ElementType::BF16)
      return columns<__nv_bfloat16, SumFold, kVector<__nv_bfloat16>, 8>(a, stream);
  }
  switch (a.fold) {
  case FoldKind::Sum:
    return byType<SumFold>(a, stream);
  case FoldKind::Prod:
    return byType<ProdFold>(a, stream);
  case FoldKind::Max:
    return byType<ExtremeFold<1>>(a, stream);
  case FoldKind::Min:
    return byType<ExtremeFold<-1>>(a, stream);
  }
  return cudaErrorInvalidValue;
}

} // namespace shardc::cuda
