// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/PeakFlops.h"

namespace shardc::cuda {
namespace {

struct Sheet {
  const char *name; ///< a part of the driver's
  double tflops16, tflopsTf32, tflops32, tflops64;
};

// The first that fits counts: "NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3".
constexpr Sheet kSheets[] = {{"H100 PCIe", 756, 378, 51, 51},    {"H100 NVL", 835, 417, 60, 60},
                             {"H100", 989.4, 494.7, 66.9, 66.9}, {"H200 NVL", 835, 417, 60, 60},
                             {"H200", 989.4, 494.7, 66.9, 66.9}, {"A100", 312, 156, 19.5, 19.5}};

} // namespace

double peakFlops(llvm::StringRef device, llvm::StringRef precision) {
  for (const Sheet &sheet : kSheets)
    if (device.contains(sheet.name))
      return 1e12 * (precision == "fp64"   ? sheet.tflops64
                     : precision == "fp32" ? sheet.tflops32
                     : precision == "tf32" ? sheet.tflopsTf32
                                           : sheet.tflops16);
  return 0;
}

} // namespace shardc::cuda
