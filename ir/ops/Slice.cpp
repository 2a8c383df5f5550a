// SPDX-License-Identifier: Apache-2.0
// A regular part of each dim: y[i] = x[starts + i * steps], i in [0, sizes). Steps may be negative.
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &x = check.in(0);
  Ints starts = check.ints("starts", x.rank()), sizes = check.ints("sizes", x.rank()),
       steps = check.ints("steps", x.rank());
  if (check.failed())
    return check.error();
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (steps[i] == 0)
      check.fail("attribute 'steps': got 0 in dim " + llvm::Twine(i) + ", wanted any other");
    if (sizes[i] < 0 || sizes[i] > x.dims[i])
      check.fail("attribute 'sizes': got " + llvm::Twine(sizes[i]) + " in dim " + llvm::Twine(i) +
                 ", wanted one in [0, " + llvm::Twine(x.dims[i]) + "]");
    if (check.failed())
      return check.error();
    if (sizes[i] == 0)
      continue;
    // |steps| beyond the dim is only sensible for one element; that also keeps the product small.
    bool inside = starts[i] >= 0 && starts[i] < x.dims[i];
    if (sizes[i] > 1) {
      inside &= steps[i] >= -x.dims[i] && steps[i] <= x.dims[i];
      int64_t last = inside ? starts[i] + (sizes[i] - 1) * steps[i] : 0;
      inside &= last >= 0 && last < x.dims[i];
    }
    if (!inside)
      check.fail("dim " + llvm::Twine(i) + ": got " + llvm::Twine(sizes[i]) + " elements from " +
                 llvm::Twine(starts[i]) + " by " + llvm::Twine(steps[i]) +
                 ", wanted them inside [0, " + llvm::Twine(x.dims[i]) + ")");
  }
  return check.done({Type(x.dtype, sizes)});
}

/// dy with `gap` zeros after each element of dim i.
Value *dilate(GradContext &g, Value *dy, int64_t i, int64_t gap) {
  Dims dims = dy->type().dims, split = dims;
  split.insert(split.begin() + i + 1, 1);
  Ints before(split.size(), 0), after = before;
  after[i + 1] = gap;
  Value *zeros =
      g.make(kPad, {g.reshape(dy, split)}, {{"before", before}, {"after", after}, {"value", 0.0}});
  dims[i] *= gap + 1;
  return g.reshape(zeros, dims);
}

// Zeros around and between: turn dims with a negative step round, spread those with a step of 2 or
// more, then pad.
void gradient(GradContext &g) {
  const Ints &starts = g.attrs().getInts("starts"), &sizes = g.attrs().getInts("sizes"),
             &steps = g.attrs().getInts("steps");
  const Dims &dims = g.in(0)->type().dims;
  int64_t rank = dims.size();
  Ints turnStarts(rank, 0), turnSteps(rank, 1), zeros(rank, 0), before(rank, 0), after(rank, 0);
  bool turn = false;
  for (int64_t i = 0; i < rank; ++i)
    if (steps[i] < 0 && sizes[i] > 1) {
      turnStarts[i] = sizes[i] - 1;
      turnSteps[i] = -1;
      turn = true;
    }
  Value *dy = turn ? g.slice(g.dOut(), turnStarts, sizes, turnSteps) : g.dOut();
  for (int64_t i = 0; i < rank; ++i) {
    int64_t step = std::abs(steps[i]), length = sizes[i];
    if (length > 1 && step > 1) {
      dy = dilate(g, dy, i, step - 1);
      length = (length - 1) * step + 1;
      Ints part(dy->type().dims);
      part[i] = length;
      dy = g.slice(dy, zeros, part);
    }
    if (length > 0)
      before[i] = steps[i] > 0 ? starts[i] : starts[i] - (length - 1);
    after[i] = dims[i] - length - before[i];
  }
  if (llvm::any_of(before, [](int64_t n) { return n; }) ||
      llvm::any_of(after, [](int64_t n) { return n; }))
    dy = g.make(kPad, {dy}, {{"before", before}, {"after", after}, {"value", 0.0}});
  g.setGrad(0, dy);
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Ints &starts = op.attrs.getInts("starts"), &sizes = op.attrs.getInts("sizes"),
             &steps = op.attrs.getInts("steps");
  Dims strides = rowMajorStrides(in[0]->dims());
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    offset += sizes[i] ? starts[i] * strides[i] : 0;
    strides[i] *= sizes[i] > 1 ? steps[i] : 1;
  }
  return Tensors{gatherStrided(*in[0], offset, sizes, strides)};
}

} // namespace

constinit const OpDef kSlice = {.mnemonic = "slice",
                                .operands = kNamesX,
                                .infer = infer,
                                .gradient = gradient,
                                .evaluate = evaluate,
                                .view = true,
                                .layouts = kStrided};

} // namespace shardc
