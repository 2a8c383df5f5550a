// SPDX-License-Identifier: Apache-2.0
#include "tools/opt/PassOptions.h"
#include "ir/base/Error.h"
#include "tools/common/CommandLine.h"
#include "tools/flags/Arguments.h"

using namespace llvm;

namespace shardc {

static Error setCount(StringRef value, int64_t least, unsigned &out) {
  Expected<int64_t> count = parseCount("--pass", value, least);
  if (!count)
    return count.takeError();
  out = unsigned(*count);
  return Error::success();
}

Error setPassOption(StringRef option, CompileOptions &options) {
  auto [key, value] = option.split('=');
  if (key == "optimizer")
    return parseChoice("--pass optimizer", value, {Optimizer::AdamW, Optimizer::Adam, Optimizer::Sgd},
                       options.optimizer);
  if (key == "precision")
    return parseChoice("--pass precision", value,
                       {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16, Precision::Fp64},
                       options.precision);
  if (key == "micro-step")
    return parseChoice("--pass micro-step", value,
                       {MicroStep::Only, MicroStep::First, MicroStep::Middle, MicroStep::Last},
                       options.microStep);
  if (key == "ranks")
    return setCount(value, 1, options.ranks);
  if (key == "zero")
    return setCount(value, 0, options.zero);
  if (key == "accumulate")
    return setCount(value, 1, options.accumulate);
  if (key == "machine") {
    options.machine = value.str();
    return Error::success();
  }
  if (double p; key == "dropout" && !value.getAsDouble(p)) {
    options.dropout = p;
    return Error::success();
  }
  if (key == "prefetch-limit" || key == "bucket") {
    Expected<int64_t> bytes = parseSize(value);
    if (!bytes)
      return bytes.takeError();
    key == "bucket" ? void(options.bucketBytes = uint64_t(*bytes)) : void(options.prefetchLimit = uint64_t(*bytes));
    return Error::success();
  }
  return userError("--pass: got option '" + option +
                   "', wanted one of optimizer= precision= dropout= ranks= zero= accumulate= "
                   "micro-step= bucket= machine= prefetch-limit=");
}

} // namespace shardc
