// SPDX-License-Identifier: Apache-2.0
// Writes (or adds, multiplies, ...) slices into a copy of the data at coordinates that the last dim
// of the indices holds.
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include "ir/ops/ScatterGradient.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &data = check.in(0), &indices = check.in(1);
  check.isIndex(1);
  check.sameDType(0, 2);
  checkReduction(check);
  if (indices.rank() == 0 || indices.dim(-1) > data.rank())
    check.fail("operand indices: got dims " + formatDims(indices.dims) +
               ", wanted a last dim of at most " + llvm::Twine(data.rank()));
  if (check.failed())
    return check.error();
  Dims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.append(data.dims.begin() + indices.dim(-1), data.dims.end());
  check.hasDims(2, dims);
  return check.done({data});
}

void gradient(GradContext &g) {
  scatterGradient(
      g,
      [&](Value *x) {
        return g.make(kGatherNd, {x, g.in(1)}, {{"batch_dims", int64_t(0)}});
      },
      [&](Value *x, Value *updates, llvm::StringRef reduction) {
        return g.make(kScatterNd, {x, g.in(1), updates}, {{"reduction", reduction.str()}});
      });
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  Tensor y = copyOf(*in[0]);
  int64_t bad = scatterNd(
      y.mutableData<char>(), y.dims(), indicesOf(*in[1]),
      in[1]->dims(), in[2]->bytes(), *parseScatter(op.attrs.getString("reduction")), y.dtype());
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "coordinates inside " + formatDims(y.dims()));
  return Tensors{y};
}

constexpr const char *kOperands[] = {"data", "indices", "updates"};

} // namespace

constinit const OpDef kScatterNd = {.mnemonic = "scatter_nd",
                                    .operands = kOperands,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .evaluate = evaluate,
                                    .inPlace = kInPlace0};

} // namespace shardc
