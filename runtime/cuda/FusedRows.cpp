// SPDX-License-Identifier: Apache-2.0
// fused_rows(x0, x1 ...){body, outputs, dims, axis, parts}: a scalar program over rows, by a kernel made of it.
#include "runtime/cuda/FusedText.h"
#include "runtime/cuda/GeneratedKernel.h"
#include "runtime/cuda/RowsLaunch.h"

namespace shardc::cuda {
namespace {

/// Blocks of the kernel that a multiprocessor holds; a guess where there is no device to ask.
int64_t residentBlocks(cudaKernel_t kernel, const RowsLayout &layout) {
  int blocks = 2;
  if (kernel && cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<const void *>(kernel),
                                                              int(layout.blockThreads()), 0) != cudaSuccess)
    (void)cudaGetLastError();
  return std::max(blocks, 1);
}

} // namespace

BoundKernel bindFusedRows(const host::Binding &b, Device &device) {
  host::Checks c(b);
  host::RowsProgram program;
  RowsLaunch launch;
  if (!readRowsProgram(b, c, program))
    return c.take();
  std::string wrong = checkFused(program.program);
  if (!(c.that(wrong.empty(), "body: " + wrong) && layOutRows(b, c, program, launch) &&
        c.that(launch.words.size() <= GeneratedKernel::kMaxWords, "number of operands: got too many for one kernel")))
    return c.take();
  auto kernel = device.compile(rowsSource(program, launch.layout), kRowsName);
  if (!kernel)
    return kernel.takeError();
  const unsigned blocks = launch.blocks(device.multiprocessors() * residentBlocks(*kernel, launch.layout));
  return std::make_unique<GeneratedKernel>(*kernel, std::move(launch.words), blocks, launch.layout.blockThreads());
}

} // namespace shardc::cuda
