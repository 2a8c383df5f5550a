// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions.
#include "frontend/NodeContext.h"

namespace shardc {
namespace {

void matMul(NodeContext &n) {
  Value *a = n.in(0), *c = n.in(1);
  Ints left(a->type().dims), right(c->type().dims);
  if (left.empty() || right.empty())
    return n.b.fail("operands: got " + toString(a->type()) + " and " + toString(c->type()) +
                    ", wanted 1 dim or more");
  bool row = left.size() == 1, column = right.size() == 1;
  if (row)
    left.insert(left.begin(), 1);
  if (column)
    right.push_back(1);
  Value *y = n.b.matmul(n.b.reshape(a, left), n.b.reshape(c, right));
  if (!y)
    return;
  Ints dims(y->type().dims);
  if (column)
    dims.pop_back();
  if (row)
    dims.erase(dims.end() - (column ? 1 : 2));
  n.set(0, n.b.reshape(y, dims));
}

// y = alpha A B + beta C
void gemm(NodeContext &n) {
  DType dtype = n.type(0).dtype;
  if (n.type(0).rank() != 2 || n.type(1).rank() != 2)
    return n.b.fail("operands: got " + toString(n.type(0)) + " and " + toString(n.type(1)) +
                    ", wanted matrices");
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  Value *y = n.b.matmul(n.in(0), n.in(1), n.intAttr("transA", 0), n.intAttr("transB", 0));
  if (alpha != 1)
    y = n.b.emit(kMul, {y, n.b.scalar(dtype, alpha)});
  if (Value *c = n.in(2)) {
    if (beta != 1)
      c = n.b.emit(kMul, {c, n.b.scalar(dtype, beta)});
    y = n.b.emit(kAdd, {y, c});
  }
  n.set(0, y);
}

/// The window of a convolution in one spatial dim.
struct Window {
  int64_t kernel, stride, dilation, before, after, size, out;
};

/// Reads and checks the attributes of Conv; empty after a mistake.
llvm::SmallVector<Window, 3> readWindows(NodeContext &n) {
  const Dims &x = n.type(0).dims, &w = n.type(1).dims;
  size_t spatial = x.size() - 2;
  Ints kernel = n.intsAttr("kernel_shape").value_or(Ints(w.begin() + 2, w.end()));
  Ints strides = n.intsAttr("strides").value_or(Ints(spatial, 1));
  Ints dilations = n.intsAttr("dilations").value_or(Ints(spatial, 1));
  Ints pads = n.intsAttr("pads").value_or(Ints(2 * spatial, 0));
  std::string automatic = n.stringAttr("auto_pad", "NOTSET");
  llvm::SmallVector<Window, 3> windows;
  if (n.failed())
    return windows;
  if (kernel.size() != spatial || strides.size() != spatial || dilations.size() != spatial ||
      pads.size() != 2 * spatial || !std::equal(kernel.begin(), kernel.end(), w.begin() + 2)) {
    n.b.fail("kernel_shape, strides, dilations or pads do not fit " + toString(n.type(1)));
    return windows;
  }
  for (size_t i = 0; i < spatial; ++i) {
    Window v{kernel[i], strides[i], dilations[i], pads[i], pads[i + spatial], x[i + 2], 0};
    constexpr int64_t kMost = int64_t(1) << 31;
    if (v.kernel < 1 || v.stride < 1 || v.dilation < 1 || v.before < 0 || v.after < 0 ||
        v.kernel > kMost || v.stride > kMost || v.dilation > kMost || v.before > kMost ||
        v.after > kMost || v.size > kMost) {
      n.b.fail("kernel, stride, dilation or padding of spatial dim " + llvm::Twine(i) +
               " is out of range");
      return {};
    }
    int64_t reach = (v.kernel - 1) * v.dilation + 1;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      int64_t out = (v.size + v.stride - 1) / v.stride;
      int64_t total = std::max<int64_t>((out - 1) * v.stride + reach - v.size, 0);
      v.before = (automatic == "SAME_LOWER" ? total + 1 : total) / 2;
      v.after = total - v.before;
    } else if (automatic == "VALID") {
      v.before = v.after = 0;
    } else if (automatic != "NOTSET") {
      n.b.fail("auto_pad: got '" + automatic + "'");
      return {};
    }
    int64_t room = v.size + v.before + v.after - reach;
    if (room < 0) {
      n.b.fail("the kernel is larger than the padded operand in spatial dim " + llvm::Twine(i));
      return {};
    }
    v.out = room / v.stride + 1;
    windows.push_back(v);
  }
  return windows;
}

/// x [N, spatial..., C] -> [N, out..., C * kernel], the kernel running fastest, as in a weight [O,
/// C, kernel...].
Value *patches(Emitter &b, Value *x, llvm::ArrayRef<Window> windows) {
  if (!x)
    return x;
  int64_t rank = x->type().rank(), taps = 1;
  Ints before(rank, 0), after(rank, 0), sizes(x->type().dims), steps(rank, 1);
  bool padded = false;
  for (size_t i = 0; i < windows.size(); ++i) {
    before[i + 1] = windows[i].before;
    after[i + 1] = windows[i].after;
    padded |= before[i + 1] || after[i + 1];
    sizes[i + 1] = windows[i].out;
    steps[i + 1] = windows[i].stride;
    taps *= windows[i].kernel;
  }
  if (padded)
    x = b.emit(kPad, {x}, {{"before", before}, {"after", after}, {"value", 0.0}});
  Ints column(sizes), dims(sizes);
  column.push_back(1);
  dims.back() *= taps;
  llvm::SmallVector<Value *> columns;
  for (int64_t tap = 0; tap < taps && !b.failed(); ++tap) {
    Ints starts(rank, 0);
    int64_t rest = tap;
    for (size_t i = windows.size(); i-- > 0; rest /= windows[i].kernel)
      starts[i + 1] = rest % windows[i].kernel * windows[i].dilation;
    columns.push_back(b.reshape(b.slice(x, starts, sizes, steps), column));
  }
  return b.failed() ? nullptr : b.reshape(b.concat(columns, rank), dims);
}

// The patches of all positions, times the weight as a matrix: the weight stays as it is stored.
void conv(NodeContext &n) {
  const Dims &x = n.type(0).dims, &w = n.type(1).dims;
  int64_t rank = x.size(), groups = n.intAttr("group", 1);
  if (rank < 3 || rank != int64_t(w.size()))
    return n.b.fail("operands: got " + toString(n.type(0)) + " and " + toString(n.type(1)) +
                    ", wanted equal ranks from 3 on");
  int64_t channels = x[1], outputs = w[0], taps = numElements(llvm::ArrayRef(w).drop_front(2));
  if (groups < 1 || groups > channels || channels % groups || outputs % groups ||
      w[1] != channels / groups)
    return n.b.fail("channels: got " + llvm::Twine(channels) + " in " + llvm::Twine(groups) +
                    " groups and weights " + toString(n.type(1)));
  if (taps > 4096)
    return n.unsupported("a kernel of " + llvm::Twine(taps) + " taps");
  llvm::SmallVector<Window, 3> windows = readWindows(n);
  if (n.failed())
    return;
  Ints toLast{0}, toFirst{0, rank - 1};
  for (int64_t i = 2; i < rank; ++i)
    toLast.push_back(i);
  toLast.push_back(1);
  for (int64_t i = 1; i < rank - 1; ++i)
    toFirst.push_back(i);
  Value *last = n.b.transpose(n.in(0), toLast);
  Value *weight = n.b.reshape(n.in(1), {outputs, channels / groups * taps});
  llvm::SmallVector<Value *> parts;
  for (int64_t g = 0; g < groups && !n.failed(); ++g) {
    Value *part = n.b.sliceAxis(last, rank - 1, g * (channels / groups), channels / groups);
    Value *rows = n.b.sliceAxis(weight, 0, g * (outputs / groups), outputs / groups);
    parts.push_back(n.b.matmul(patches(n.b, part, windows), rows, false, /*transposeB=*/true));
  }
  if (n.failed())
    return;
  Value *y = n.b.concat(parts, rank - 1);
  if (n.in(2))
    y = n.b.emit(kAdd, {y, n.in(2)});
  n.set(0, n.b.transpose(y, toFirst));
}

constexpr NodeRule kRules[] = {
    {"MatMul", 2, 2, matMul},
    {"Gemm", 2, 3, gemm},
    {"Conv", 2, 3, conv},
};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kProductRules = kRules;

} // namespace shardc
