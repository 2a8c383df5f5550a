// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Checks.h"
#include "ir/base/Error.h"

namespace shardc::host {

bool Checks::fail(const llvm::Twine &what) {
  if (complaint_.empty())
    complaint_ = what.str();
  return false;
}

llvm::Error Checks::take() {
  assert(!complaint_.empty());
  return userError(llvm::Twine(b_.place) + ": " + b_.command->kernel() + ": " + complaint_);
}

std::string Checks::nameOf(const Array &a) const {
  for (size_t i = 0; i < b_.in.size(); ++i)
    if (&a == &b_.in[i])
      return "operand " + std::to_string(i);
  for (size_t i = 0; i < b_.out.size(); ++i)
    if (&a == &b_.out[i])
      return "result " + std::to_string(i);
  return "operand";
}

bool Checks::that(bool good, llvm::StringRef what) { return good || fail(what); }

bool Checks::arity(size_t minimum, size_t maximum, size_t results, size_t optionalResults) {
  if (b_.in.size() < minimum || b_.in.size() > maximum)
    return fail("number of operands: got " + llvm::Twine(b_.in.size()) + ", wanted " +
                llvm::Twine(minimum) + " to " + llvm::Twine(maximum));
  if (b_.out.size() > results || b_.out.size() + optionalResults < results)
    return fail("number of results: got " + llvm::Twine(b_.out.size()) + ", wanted " +
                llvm::Twine(results));
  for (size_t i = 0; i < minimum; ++i)
    if (!b_.in[i])
      return fail("operand " + llvm::Twine(i) + " is absent");
  for (size_t i = 0; i + optionalResults < results; ++i)
    if (!b_.out[i])
      return fail("result " + llvm::Twine(i) + " is absent");
  return true;
}

bool Checks::rank(const Array &a, size_t rank) {
  return a.dims.size() == rank || fail(nameOf(a) + ": rank: got " + llvm::Twine(a.dims.size()) +
                                       ", wanted " + llvm::Twine(rank));
}

bool Checks::dims(const Array &a, llvm::ArrayRef<int64_t> wanted) {
  return llvm::ArrayRef(a.dims) == wanted ||
         fail(nameOf(a) + ": shape: got " + formatDims(a.dims) + ", wanted " + formatDims(wanted));
}

bool Checks::dtype(const Array &a, DType wanted) {
  return a.dtype == wanted ||
         fail(nameOf(a) + ": type: got " + toString(a.dtype) + ", wanted " + toString(wanted));
}

bool Checks::real(const Array &a) {
  return a.dtype == DType::F32 || a.dtype == DType::F64 ||
         fail(nameOf(a) + ": type: got " + toString(a.dtype) + ", wanted f32 or f64");
}

bool Checks::index(const Array &a) {
  return a.dtype == DType::I64 || a.dtype == DType::I32 ||
         fail(nameOf(a) + ": type: got " + toString(a.dtype) + ", wanted i64 or i32");
}

bool Checks::contiguous(const Array &a) {
  return a.contiguous() ||
         fail(nameOf(a) + ": layout: got strides " + formatDims(a.strides) + ", wanted row-major");
}

bool Checks::denseResults() {
  for (const Array &a : b_.out)
    if (a && !contiguous(a))
      return false;
  return true;
}

bool Checks::lastDim(const Array &a) {
  return a.dims.empty() || a.strides.back() == 1 || a.dims.back() == 1 ||
         fail(nameOf(a) + ": layout: got stride " + llvm::Twine(a.strides.back()) +
              " in the last dim, wanted 1");
}

bool Checks::apart(llvm::ArrayRef<std::pair<unsigned, unsigned>> inPlace) {
  for (size_t o = 0; o < b_.out.size(); ++o) {
    for (size_t i = 0; i < b_.in.size(); ++i) {
      if (!overlap(b_.out[o], b_.in[i]))
        continue;
      bool allowed = llvm::is_contained(inPlace, std::pair<unsigned, unsigned>(o, i)) &&
                     sameArray(b_.out[o], b_.in[i]);
      // Interleaved slices of one buffer overlap in extent only; plan/Check judges those.
      if (!allowed && b_.out[o].contiguous() && b_.in[i].contiguous())
        return fail("result " + llvm::Twine(o) + " overlaps operand " + llvm::Twine(i));
    }
    for (size_t p = 0; p < o; ++p)
      if (overlap(b_.out[o], b_.out[p]) && b_.out[o].contiguous() && b_.out[p].contiguous())
        return fail("result " + llvm::Twine(o) + " overlaps result " + llvm::Twine(p));
  }
  return true;
}

bool Checks::workspace(int64_t bytes) {
  return b_.workspaceBytes >= bytes || fail("workspace: got " + llvm::Twine(b_.workspaceBytes) +
                                            " bytes, wanted " + llvm::Twine(bytes));
}

const plan::Attr *Checks::find(llvm::StringRef name) const {
  for (const plan::Attr &attr : b_.command->attrs())
    if (attr.name() == name)
      return &attr;
  return nullptr;
}

bool Checks::has(llvm::StringRef name) const { return find(name); }

bool Checks::intAttr(llvm::StringRef name, int64_t &value, std::optional<int64_t> otherwise) {
  const plan::Attr *attr = find(name);
  if (!attr && otherwise) {
    value = *otherwise;
    return true;
  }
  if (!attr || attr->value_case() != plan::Attr::kI)
    return fail("attribute " + name + ": wanted an integer");
  value = attr->i();
  return true;
}

bool Checks::floatAttr(llvm::StringRef name, double &value, std::optional<double> otherwise) {
  const plan::Attr *attr = find(name);
  if (!attr && otherwise) {
    value = *otherwise;
    return true;
  }
  if (!attr || (attr->value_case() != plan::Attr::kF && attr->value_case() != plan::Attr::kI))
    return fail("attribute " + name + ": wanted a number");
  value = attr->value_case() == plan::Attr::kF ? attr->f() : double(attr->i());
  return true;
}

bool Checks::stringAttr(llvm::StringRef name, std::string &value) {
  const plan::Attr *attr = find(name);
  if (!attr || attr->value_case() != plan::Attr::kS)
    return fail("attribute " + name + ": wanted a text");
  value = attr->s();
  return true;
}

bool Checks::intsAttr(llvm::StringRef name, llvm::SmallVectorImpl<int64_t> &value) {
  const plan::Attr *attr = find(name);
  if (!attr || attr->value_case() != plan::Attr::kInts)
    return fail("attribute " + name + ": wanted integers");
  value.assign(attr->ints().v().begin(), attr->ints().v().end());
  return true;
}

bool Checks::axisAttr(llvm::StringRef name, size_t rank, int64_t &axis,
                      std::optional<int64_t> otherwise) {
  int64_t value, n = rank;
  if (!intAttr(name, value, otherwise))
    return false;
  axis = value < 0 ? value + n : value;
  if (value < -n || value >= n)
    return fail("attribute " + name + ": got " + llvm::Twine(value) + ", wanted an axis of " +
                llvm::Twine(n) + " dims");
  return true;
}

std::pair<const char *, const char *> extent(const Array &a) {
  const char *begin = a.as<const char>();
  if (!a || a.numElements() == 0)
    return {begin, begin};
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < a.dims.size(); ++i)
    (a.strides[i] < 0 ? low : high) += (a.dims[i] - 1) * a.strides[i];
  return {begin + low * byteSize(a.dtype), begin + (high + 1) * byteSize(a.dtype)};
}

bool overlap(const Array &a, const Array &b) {
  auto [aBegin, aEnd] = extent(a);
  auto [bBegin, bEnd] = extent(b);
  return aBegin < bEnd && bBegin < aEnd;
}

bool sameArray(const Array &a, const Array &b) {
  if (a.data != b.data || byteSize(a.dtype) != byteSize(b.dtype))
    return false;
  if (a.contiguous() && b.contiguous())
    return a.numElements() == b.numElements();
  return a.dims == b.dims && a.strides == b.strides;
}

bool broadcastStrides(const Array &a, llvm::ArrayRef<int64_t> dims, Dims &strides) {
  strides.assign(dims.size(), 0);
  if (a.dims.size() > dims.size())
    return false;
  size_t skip = dims.size() - a.dims.size();
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i] == dims[skip + i])
      strides[skip + i] = a.dims[i] == 1 ? 0 : a.strides[i];
    else if (a.dims[i] != 1)
      return false;
  }
  return true;
}

} // namespace shardc::host
