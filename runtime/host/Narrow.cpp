// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Narrow.h"
#include "ir/base/DTypeDispatch.h"
#include "ir/base/Error.h"
#include "ir/base/Half.h"
#include "llvm/Support/MathExtras.h"
#include "runtime/host/Checks.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Strided.h"

namespace shardc::host {
namespace {

constexpr int64_t kAlignment = 64;
constexpr llvm::StringRef kTakeHalves[] = {
    "fused",       "fused_rows",       "column_sums",          "copy",
    "sum_squares", "all_gather_start", "reduce_scatter_start", "all_reduce_start"};

/// How a command's operands and results reach its kernel.
struct Rule {
  bool widens = false; ///< 16-bit floats are widened
  int tf32 = 0; ///< so many f32 operands are rounded
  static Rule of(const plan::Command &command) {
    llvm::StringRef kernel = command.kernel();
    Rule rule{!llvm::is_contained(kTakeHalves, kernel)};
    const plan::Attr *tf32 = findAttr(command.attrs(), "tf32");
    if (tf32 && tf32->i())
      rule.tf32 = kernel == "matmul" ? 2 : kernel == "attention" ? 3 : kernel == "attention_grad" ? 4
                  : kernel == "relative_attention"                     ? 5
                  : kernel == "relative_attention_grad"                ? 6
                                                                       : 0;
    return rule;
  }
  bool takes(DType dtype, int operand) const {
    return (widens && isHalf(dtype)) || (dtype == DType::F32 && operand >= 0 && operand < tf32);
  }
};

int64_t wideBytes(int64_t elements) { return llvm::alignTo(elements * sizeof(float), kAlignment); }

struct Tf32Value {
  float value;
  operator float() const { return roundToTf32(value); }
};

/// An array and its place in scratch memory, in row-major order.
struct Twin {
  DType dtype;
  char *narrow;
  Walk walk;
  float *wide;
  int64_t count;

  template <typename T> void widenAs() const {
    parallelFor(count, 1 << 14, [&](int64_t begin, int64_t end, int) {
      const T *from = reinterpret_cast<const T *>(narrow);
      walk.forRuns(begin, end, [&](int64_t offset, int64_t stride, int64_t n, int64_t position) {
        for (int64_t i = 0; i < n; ++i)
          wide[position + i] = from[offset + i * stride];
      });
    });
  }
  template <typename T> void roundAs() const {
    parallelFor(count, 1 << 14, [&](int64_t begin, int64_t end, int) {
      T *to = reinterpret_cast<T *>(narrow);
      walk.forRuns(begin, end, [&](int64_t offset, int64_t stride, int64_t n, int64_t position) {
        for (int64_t i = 0; i < n; ++i)
          to[offset + i * stride] = wide[position + i];
      });
    });
  }
  void widen() const {
    dtype == DType::F16 ? widenAs<HalfValue>() : dtype == DType::BF16 ? widenAs<BFloatValue>() : widenAs<Tf32Value>();
  }
  void round() const { dtype == DType::F16 ? roundAs<HalfValue>() : roundAs<BFloatValue>(); }
};

class Narrow final : public Kernel {
public:
  Narrow(std::unique_ptr<Kernel> kernel, std::vector<Twin> in, std::vector<Twin> out)
      : kernel_(std::move(kernel)), in_(std::move(in)), out_(std::move(out)) {}

  void run() override {
    for (const Twin &twin : in_)
      twin.widen();
    kernel_->run();
    for (const Twin &twin : out_)
      twin.round();
  }

private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<Twin> in_, out_;
};

/// Gives 16-bit arrays their twins, from the scratch memory's start on.
class Twins {
public:
  explicit Twins(char *scratch) : next_(scratch) {}

  /// What lies in the memory of one of `operands` (it is updated in place) shares its twin.
  Twin add(const Array &a, llvm::ArrayRef<Twin> operands = {}) {
    Twin twin{a.dtype, a.as<char>(), Walk::of(a.dims, a.strides), nullptr, a.numElements()};
    for (const Twin &other : operands)
      if (other.narrow == twin.narrow && other.count == twin.count)
        twin.wide = other.wide;
    if (!twin.wide) {
      twin.wide = reinterpret_cast<float *>(next_);
      next_ += wideBytes(twin.count);
    }
    return twin;
  }

private:
  char *next_;
};

void replace(Array &a, const Twin &twin) {
  if (twin.count) // else any address will do, but none would mean that it is absent
    a.data = twin.wide;
  a.dtype = DType::F32;
  a.strides = rowMajorStrides(a.dims);
}

BoundKernel bindPlain(const Binding &b) {
  Bind bind = findKernel(b.command->kernel());
  if (!bind)
    return userError(llvm::Twine(b.place) + ": no host kernel is called " + b.command->kernel());
  return bind(b);
}

} // namespace

int64_t scratchBytes(const plan::Command &command, llvm::ArrayRef<Array> in, llvm::ArrayRef<Array> out) {
  Rule rule = Rule::of(command);
  int64_t bytes = 0;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] && rule.takes(in[i].dtype, int(i)))
      bytes += wideBytes(in[i].numElements());
  for (const Array &a : out)
    if (a && rule.takes(a.dtype, -1))
      bytes += wideBytes(a.numElements());
  return bytes;
}

std::optional<int64_t> scratchBytes(const plan::Command &command) {
  constexpr int64_t kMost = int64_t(1) << 50; // elements
  Rule rule = Rule::of(command);
  int64_t bytes = 0;
  auto add = [&](const plan::Ref &ref, int operand) {
    if (ref.absent() || ref.dtype() >= kNumDTypes || !rule.takes(DType(ref.dtype()), operand))
      return true;
    std::optional<int64_t> elements = checkedNumElements({ref.dims().data(), size_t(ref.dims_size())});
    return elements && *elements <= kMost && !llvm::AddOverflow(bytes, wideBytes(*elements), bytes);
  };
  for (int i = 0; i < command.inputs_size(); ++i)
    if (!add(command.inputs(i), i))
      return std::nullopt;
  for (const plan::Ref &ref : command.outputs())
    if (!add(ref, -1))
      return std::nullopt;
  return bytes;
}

BoundKernel bindNarrow(const Binding &binding) {
  Rule rule = Rule::of(*binding.command);
  int64_t bytes = scratchBytes(*binding.command, binding.in, binding.out);
  if (bytes > binding.scratchBytes)
    return userError(llvm::Twine(binding.place) + ": scratch memory: got " +
                     llvm::Twine(binding.scratchBytes) + " bytes, wanted " + llvm::Twine(bytes));
  Binding wide = binding;
  Twins twins(static_cast<char *>(binding.scratch));
  std::vector<Twin> in, out;
  for (auto [i, a] : llvm::enumerate(wide.in))
    if (a && rule.takes(a.dtype, int(i))) {
      in.push_back(twins.add(a));
      replace(a, in.back());
    }
  for (Array &a : wide.out)
    if (a && rule.takes(a.dtype, -1)) {
      out.push_back(twins.add(a, in));
      replace(a, out.back());
    }
  BoundKernel kernel = bindPlain(wide);
  if (!kernel || (in.empty() && out.empty()))
    return kernel;
  return std::make_unique<Narrow>(std::move(*kernel), std::move(in), std::move(out));
}

} // namespace shardc::host
