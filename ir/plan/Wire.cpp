// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Wire.h"
#include "ir/base/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace shardc {

constexpr StringLiteral kAllReduce = "all_reduce_start";

uint64_t wireBytes(StringRef kernel, uint64_t ranks, uint64_t bytes) {
  uint64_t times = (kernel == kAllReduce ? 2 : 1) * (ranks - 1);
  // bytes * times / ranks without an overflow
  return bytes / ranks * times + divideCeil(bytes % ranks * times, ranks);
}

bool isCollective(const plan::Command &command) {
  StringRef kernel = command.kernel();
  return kernel == "all_gather_start" || kernel == "reduce_scatter_start" || kernel == kAllReduce;
}

uint64_t collectiveRanks(const plan::Command &command) {
  const plan::Attr *ranks = findAttr(command.attrs(), "ranks");
  return ranks && ranks->i() > 0 ? uint64_t(ranks->i()) : 1;
}

uint64_t bytesOf(const plan::Ref &ref) {
  return uint64_t(numElements({ref.dims().data(), size_t(ref.dims_size())})) * byteSize(DType(ref.dtype()));
}

uint64_t collectiveBytes(const plan::Command &command) {
  bool gathers = StringRef(command.kernel()) == "all_gather_start";
  return bytesOf(gathers ? command.outputs(0) : command.inputs(0));
}

} // namespace shardc
