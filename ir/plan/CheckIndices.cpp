// SPDX-License-Identifier: Apache-2.0
// Whether what commands pick from by indices has a place for every index that the host may give, or that the plan itself holds. Indices
// that are computed are judged when they are there, by the kernels.
#include "ir/base/Error.h"
#include "ir/plan/Check.h"
#include "llvm/ADT/DenseMap.h"
#include <cstring>

using namespace llvm;

namespace shardc::check {
namespace {

/// How a command reads indices. Element i of them is one of dim `sizes[i mod number of sizes]`.
struct Picking {
  const plan::Ref *indices = nullptr;
  SmallVector<int64_t, 4> sizes;
  bool fromTheEnd = true; ///< negative ones count from the end
  std::optional<int64_t> ignored;
};

std::optional<int64_t> integer(const plan::Command &c, StringRef name) {
  const plan::Attr *attr = findAttr(c.attrs(), name);
  return attr && attr->has_i() ? std::optional(attr->i()) : std::nullopt;
}

/// nullopt: the command picks nothing, or not as its kernel wants it, which refuses to be bound.
std::optional<Picking> pickingOf(const plan::Command &c) {
  StringRef kernel = c.kernel();
  const bool loss = kernel.starts_with("cross_entropy"), gradient = kernel.ends_with("_grad");
  if (!loss && !is_contained({"embedding", "embedding_grad", "gather", "gather_grad", "gather_elements", "gather_elements_grad",
                              "scatter_elements", "gather_nd", "scatter_nd"},
                             kernel))
    return std::nullopt;
  const int first = loss && gradient; // the gradient of the loss comes before
  if (c.inputs_size() < first + 2 || c.outputs_size() < 1 || c.inputs(first).absent() || c.inputs(first + 1).absent())
    return std::nullopt;
  Picking picking;
  picking.indices = &c.inputs(first + 1);
  const auto &dims = gradient && !loss ? c.outputs(0).dims() : c.inputs(first).dims();
  if (kernel.ends_with("_nd")) {
    const auto &of = picking.indices->dims();
    if (of.empty() || of[of.size() - 1] < 1 || of[of.size() - 1] > dims.size() || integer(c, "batch_dims").value_or(0) != 0)
      return std::nullopt;
    picking.sizes.append(dims.begin(), dims.begin() + of[of.size() - 1]);
    return picking;
  }
  int64_t axis = loss ? 1 : kernel.starts_with("embedding") ? 0 : integer(c, "axis").value_or(INT64_MAX);
  axis += axis < 0 ? dims.size() : 0;
  if (axis < 0 || axis >= dims.size())
    return std::nullopt;
  picking.sizes.push_back(dims[int(axis)]);
  picking.fromTheEnd = !loss;
  if (loss)
    picking.ignored = integer(c, "ignore_index");
  return picking;
}

class Indices {
public:
  explicit Indices(const plan::Plan &plan) {
    for (const plan::Input &input : plan.inputs())
      inputs_[input.buffer()] = &input;
    for (const plan::ConstantData &constant : plan.constants())
      constants_[constant.buffer()] = &constant.data();
  }

  Error check(const Picking &picking) const {
    const plan::Ref &ref = *picking.indices;
    DType dtype = DType(ref.dtype());
    if (ref.version() != 0 || (dtype != DType::I64 && dtype != DType::I32) || touchedBytes(ref)->empty())
      return Error::success(); // computed, or none
    if (const plan::Input *input = inputs_.lookup(ref.buffer())) {
      if (input->low() >= input->high())
        return Error::success();
      for (int64_t index : {input->low(), input->high() - 1})
        if (Error error = checkIndex(picking, 0, index, "input " + input->name()))
          return error;
    } else if (const std::string *data = constants_.lookup(ref.buffer())) {
      return checkConstant(picking, *data);
    }
    return Error::success();
  }

private:
  static Error checkIndex(const Picking &picking, size_t element, int64_t index, const Twine &where) {
    const int64_t size = picking.sizes[element % picking.sizes.size()];
    if (index == picking.ignored || (index >= (picking.fromTheEnd ? -size : 0) && index < size))
      return Error::success();
    return userError(where + ": an index has no place: got " + Twine(index) + ", wanted one below " + Twine(size));
  }

  /// All elements. Where they share memory there could be more than anyone waits for.
  static Error checkConstant(const Picking &picking, StringRef data) {
    const plan::Ref &ref = *picking.indices;
    if (!elementsAreDisjoint(ref) || touchedBytes(ref)->end > data.size())
      return Error::success();
    const int64_t size = byteSize(DType(ref.dtype()));
    SmallVector<int64_t, 4> at(ref.dims_size(), 0), strides = stridesOf(ref);
    int64_t offset = int64_t(ref.offset());
    for (size_t element = 0;; ++element) {
      int64_t wide = 0;
      int32_t narrow = 0;
      std::memcpy(size == 8 ? static_cast<void *>(&wide) : &narrow, data.data() + offset, size_t(size));
      if (Error error = checkIndex(picking, element, size == 8 ? wide : narrow, "constant"))
        return error;
      int d = ref.dims_size() - 1;
      for (; d >= 0 && ++at[d] == ref.dims(d); at[d--] = 0)
        offset -= (ref.dims(d) - 1) * strides[d] * size;
      if (d < 0)
        return Error::success();
      offset += strides[d] * size;
    }
  }

  DenseMap<uint32_t, const plan::Input *> inputs_;
  DenseMap<uint32_t, const std::string *> constants_;
};

} // namespace

Error checkIndices(const plan::Plan &plan) {
  Indices indices(plan);
  for (int p = 0; p < plan.programs_size(); ++p)
    for (int i = 0; i < plan.programs(p).commands_size(); ++i)
      if (std::optional<Picking> picking = pickingOf(plan.programs(p).commands(i)))
        if (Error error = at(indices.check(*picking), [&] { return describe(plan, p, i); }))
          return error;
  return Error::success();
}

} // namespace shardc::check
