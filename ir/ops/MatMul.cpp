// SPDX-License-Identifier: Apache-2.0
// y = act(op(a) op(b) [+ bias] [+ c]), rounded once; op transposes the last two dims where asked, the leading
// (batch) dims broadcast. bias[n] is one number a column, of a's type; c has y's dims and type, and y may take its
// memory. act: "relu", or none. wide = 1 leaves the sums over 16-bit operands unrounded, f32; tf32 = 1: a and b of
// f32 are rounded to 10 bits behind the leading one.
#include "ir/base/Workspace.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

constexpr unsigned kC = 2, kBias = 3;

bool hasRelu(const Op &op) { return op.attrs.has("act") && op.attrs.getString("act") == "relu"; }

llvm::ArrayRef<int64_t> batchOf(llvm::ArrayRef<int64_t> dims) { return dims.drop_back(2); }

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &a = check.in(0), &b = check.in(1);
  bool ta = check.flag("transpose_a"), tb = check.flag("transpose_b");
  check.flag("tf32");
  check.sameDType(0, 1);
  check.isFloatOrInt(0);
  for (unsigned i = 0; i < 2; ++i)
    if (check.in(i).rank() < 2)
      check.fail(llvm::Twine("operand ") + (i ? "b" : "a") + ": got dims " +
                 formatDims(check.in(i).dims) + ", wanted rank 2 or more");
  if (check.failed())
    return check.error();
  int64_t ka = a.dim(ta ? -2 : -1), kb = b.dim(tb ? -1 : -2);
  if (ka != kb)
    check.fail("inner sizes differ: got " + llvm::Twine(ka) + " (of " + formatDims(a.dims) +
               (ta ? " transposed" : "") + ") and " + llvm::Twine(kb) + " (of " +
               formatDims(b.dims) + (tb ? " transposed" : "") + "), wanted equal ones");
  std::optional<Dims> dims = broadcastDims(batchOf(a.dims), batchOf(b.dims));
  if (!dims)
    check.fail("batch dims do not broadcast: got " + formatDims(a.dims) + " and " +
               formatDims(b.dims) + ", wanted equal ones or 1");
  if (check.failed())
    return check.error();
  dims->push_back(a.dim(ta ? -1 : -2));
  dims->push_back(b.dim(tb ? -2 : -1));
  DType dtype = checkSumType(check, 0, kC, *dims);
  if (check.has(kBias)) {
    check.sameDType(0, kBias);
    check.hasDims(kBias, {dims->back()});
  }
  if (llvm::StringRef act = op.attrs.has("act") ? check.text("act") : ""; act != "" && act != "relu")
    check.fail("attribute 'act': got '" + act + "', wanted 'relu' or ''");
  return check.done({Type(dtype, *dims)});
}

/// [.., M, K] as [.. * M, K]: one product instead of a batch of them.
Value *flattened(GradContext &g, Value *value) {
  const Dims &dims = value->type().dims;
  return g.reshape(value, {numElements(llvm::ArrayRef(dims).drop_back()), dims.back()});
}

// With y = A B: dA = dy B^T, dB = A^T dy; where an operand came transposed, its gradient is the
// transpose of these. Broadcast batches are summed, for a shared B (a weight) inside the product. Nothing passes
// where ReLU has put 0.
void gradient(GradContext &g) {
  Value *wide = g.dOut();
  if (hasRelu(g.op())) {
    Value *passes = g.make(kGreater, {g.out(), g.scalar(g.out()->type().dtype, 0)});
    wide = g.where(passes, wide, g.scalar(wide->type().dtype, 0));
  }
  Value *a = g.in(0), *b = g.in(1), *dy = g.cast(wide, a->type().dtype);
  bool ta = g.attrs().getInt("transpose_a", 0), tb = g.attrs().getInt("transpose_b", 0);
  auto product = [&](Value *x, Value *y, bool tx, bool ty) {
    Value *made = g.matmul(x, y, tx, ty);
    if (g.attrs().has("tf32"))
      made->op()->attrs.set("tf32", g.attrs().getInt("tf32"));
    return made;
  };
  if (g.needs(0))
    g.setGrad(0, ta ? product(b, dy, tb, true) : product(dy, b, false, !tb));
  if (g.needs(1)) {
    llvm::ArrayRef<int64_t> bDims = b->type().dims;
    bool shared = numElements(batchOf(bDims)) == 1 && !ta && a->type().rank() > 2;
    if (shared) {
      a = flattened(g, a);
      dy = flattened(g, dy);
    }
    Value *db = tb ? product(dy, a, true, ta) : product(a, dy, !ta, false);
    g.setGrad(1, shared ? g.reshape(db, bDims) : db);
  }
  if (g.needs(kC))
    g.setGrad(kC, wide);
  if (g.needs(kBias)) {
    Ints rows; // all dims but the last
    for (int64_t i = 0; i + 1 < wide->type().rank(); ++i)
      rows.push_back(i);
    g.setGrad(kBias, g.cast(g.sum(wide, rows, /*keepDims=*/false), a->type().dtype));
  }
}

Cost cost(const Op &op) {
  const Type &a = op.operand(0)->type(), &y = op.result()->type();
  int64_t k = a.dim(op.attrs.getInt("transpose_a", 0) ? -2 : -1);
  double bytes = double(y.numBytes()) * (op.operand(kC) ? 2 : 1);
  if (const Value *bias = op.operand(kBias))
    bytes += double(bias->type().numBytes());
  return {2.0 * double(y.numElements()) * double(k),
          bytes + double(a.numBytes()) + double(op.operand(1)->type().numBytes())};
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  bool ta = op.attrs.getInt("transpose_a", 0), tb = op.attrs.getInt("transpose_b", 0);
  int64_t m = type.dim(-2), n = type.dim(-1);
  int64_t k = in[0]->dims()[in[0]->rank() - (ta ? 2 : 1)];
  llvm::ArrayRef<int64_t> batch = batchOf(type.dims);
  Dims strideA = broadcastStrides(batchOf(in[0]->dims()), batch),
       strideB = broadcastStrides(batchOf(in[1]->dims()), batch), strideY = rowMajorStrides(batch);
  std::vector<double> a = productOperand(op, *in[0]), b = productOperand(op, *in[1]);
  std::vector<double> y(type.numElements());
  if (in.size() > kC && in[kC])
    y = toDoubles(*in[kC]);
  if (in.size() > kBias)
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += in[kBias]->asDouble(i % n);
  for (int64_t p = 0, products = numElements(batch); p < products && !y.empty(); ++p) {
    int64_t atA = 0, atB = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      int64_t index = p / strideY[i] % batch[i];
      atA += index * strideA[i];
      atB += index * strideB[i];
    }
    const double *pa = a.data() + atA * m * k, *pb = b.data() + atB * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; ++l) {
        double ail = ta ? pa[l * m + i] : pa[i * k + l];
        for (int64_t j = 0; j < n; ++j)
          y[(p * m + i) * n + j] += ail * (tb ? pb[j * k + l] : pb[l * n + j]);
      }
  }
  if (hasRelu(op))
    for (double &value : y)
      value = value > 0 || value != value ? value : 0;
  return Tensors{fromDoubles(type.dtype, type.dims, y)};
}

constexpr const char *kOperands[] = {"a", "b", "c?", "bias?"};
constexpr InPlace kAccumulates[] = {{kC, 0}};

} // namespace

constinit const OpDef kMatMul = {.mnemonic = "matmul",
                                 .operands = kOperands,
                                 .infer = infer,
                                 .gradient = gradient,
                                 .evaluate = evaluate,
                                 .cost = cost,
                                 .layouts = kMatrix,
                                 .inPlace = kAccumulates,
                                 .workspace = [](const Op &) { return kProductWorkspace; }};

} // namespace shardc
