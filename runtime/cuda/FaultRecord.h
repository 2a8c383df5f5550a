// SPDX-License-Identifier: Apache-2.0
// What a running kernel found wrong in its data. Read by nvcc too: no other header.
#pragma once

namespace shardc::cuda {

/// In device memory, all zero at first. The first report stays.
struct FaultRecord {
  int raised; ///< 0, then 1
  int site;   ///< Device::faultSite of the one that reports
  long long value, low, high; ///< got `value`, wanted [low, high)
};

#ifdef __CUDACC__
/// Value `value` is outside [low, high). Any thread, any number of them.
__device__ inline void reportFault(FaultRecord *record, int site, long long value, long long low, long long high) {
  if (atomicExch(&record->raised, 1) != 0)
    return;
  record->site = site, record->value = value, record->low = low, record->high = high;
}

/// Brings `index` into [0, limit), reporting one that is not. Requires: limit > 0.
__device__ inline long long checkedIndex(FaultRecord *record, int site, long long index, long long limit) {
  if ((unsigned long long)index < (unsigned long long)limit)
    return index;
  reportFault(record, site, index, 0, limit);
  return 0;
}

/// The same, with negative ones counted from the end as ONNX does.
__device__ inline long long wrappedIndex(FaultRecord *record, int site, long long index, long long limit) {
  long long i = index < 0 ? index + limit : index;
  if ((unsigned long long)i < (unsigned long long)limit)
    return i;
  reportFault(record, site, index, -limit, limit);
  return 0;
}
#endif

} // namespace shardc::cuda
