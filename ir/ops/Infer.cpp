// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/Infer.h"
#include "ir/base/Error.h"
#include "ir/base/Movement.h"
#include "ir/graph/Fold.h"

namespace shardc {

std::string OpCheck::nameOf(unsigned i) const {
  llvm::ArrayRef<const char *> names = op_.def().operands;
  if (names.empty())
    return "operand " + std::to_string(i);
  llvm::StringRef name = names[std::min<size_t>(i, names.size() - 1)];
  std::string text = name.rtrim("?*").str();
  if (name.ends_with("*"))
    text += std::to_string(i + 1 - names.size());
  return text;
}

void OpCheck::fail(const llvm::Twine &message) {
  if (message_.empty())
    message_ = message.str();
}

llvm::Error OpCheck::error() const { return userError(message_); }

llvm::Expected<Types> OpCheck::done(Types types) const {
  if (failed())
    return error();
  for (const Type &type : types)
    if (!checkedNumElements(type.dims))
      return userError("result is too large: got " + formatDims(type.dims) +
                       ", wanted at most 2^44 elements");
  return types;
}

const Attr *OpCheck::find(llvm::StringRef attr, llvm::StringRef wanted) {
  const Attr *value = op_.attrs.find(attr);
  if (!value)
    fail("attribute '" + attr + "' is missing: wanted " + wanted);
  return value;
}

static std::string describe(const Attr &attr) {
  if (auto *i = std::get_if<int64_t>(&attr))
    return std::to_string(*i);
  if (auto *f = std::get_if<double>(&attr))
    return std::to_string(*f);
  if (auto *s = std::get_if<std::string>(&attr))
    return "'" + *s + "'";
  if (auto *list = std::get_if<Ints>(&attr))
    return std::to_string(list->size()) + " integers";
  return "a tensor";
}

int64_t OpCheck::integer(llvm::StringRef attr) {
  const Attr *value = find(attr, "an integer");
  if (!value)
    return 0;
  if (auto *i = std::get_if<int64_t>(value))
    return *i;
  fail("attribute '" + attr + "': got " + describe(*value) + ", wanted an integer");
  return 0;
}

int64_t OpCheck::integer(llvm::StringRef attr, int64_t otherwise) {
  return op_.attrs.has(attr) ? integer(attr) : otherwise;
}

int64_t OpCheck::count(llvm::StringRef attr) {
  int64_t value = integer(attr);
  if (value < 0)
    fail("attribute '" + attr + "': got " + llvm::Twine(value) + ", wanted one from 0 on");
  return value;
}

bool OpCheck::flag(llvm::StringRef attr) {
  int64_t value = integer(attr, 0);
  if (value != 0 && value != 1)
    fail("attribute '" + attr + "': got " + llvm::Twine(value) + ", wanted 0 or 1");
  return value == 1;
}

double OpCheck::number(llvm::StringRef attr) {
  const Attr *value = find(attr, "a number");
  if (!value)
    return 0;
  if (auto *f = std::get_if<double>(value))
    return *f;
  if (auto *i = std::get_if<int64_t>(value))
    return double(*i);
  fail("attribute '" + attr + "': got " + describe(*value) + ", wanted a number");
  return 0;
}

double OpCheck::number(llvm::StringRef attr, double otherwise) {
  return op_.attrs.has(attr) ? number(attr) : otherwise;
}

llvm::StringRef OpCheck::text(llvm::StringRef attr) {
  const Attr *value = find(attr, "a text");
  if (!value)
    return "";
  if (auto *s = std::get_if<std::string>(value))
    return *s;
  fail("attribute '" + attr + "': got " + describe(*value) + ", wanted a text");
  return "";
}

Ints OpCheck::ints(llvm::StringRef attr) {
  const Attr *value = find(attr, "a list of integers");
  if (!value)
    return {};
  if (auto *list = std::get_if<Ints>(value))
    return *list;
  fail("attribute '" + attr + "': got " + describe(*value) + ", wanted a list of integers");
  return {};
}

Ints OpCheck::ints(llvm::StringRef attr, int64_t count) {
  Ints list = ints(attr);
  if (int64_t(list.size()) != count)
    fail("attribute '" + attr + "': got " + llvm::Twine(list.size()) + " integers, wanted " +
         llvm::Twine(count));
  return list;
}

int64_t OpCheck::axis(llvm::StringRef attr, int64_t rank) {
  int64_t axis = integer(attr);
  if (axis < -rank || axis >= rank)
    fail("attribute '" + attr + "': got " + llvm::Twine(axis) + ", wanted one in [" +
         llvm::Twine(-rank) + ", " + llvm::Twine(rank) + ")");
  return failed() ? 0 : normalAxis(axis, rank);
}

Ints OpCheck::axes(llvm::StringRef attr, int64_t rank) {
  Ints list = ints(attr);
  for (int64_t &axis : list) {
    if (axis < -rank || axis >= rank)
      fail("attribute '" + attr + "': got " + llvm::Twine(axis) + ", wanted ones in [" +
           llvm::Twine(-rank) + ", " + llvm::Twine(rank) + ")");
    axis = normalAxis(axis, rank);
  }
  llvm::sort(list);
  if (std::adjacent_find(list.begin(), list.end()) != list.end())
    fail("attribute '" + attr + "': got an axis twice, wanted distinct ones");
  return failed() ? Ints() : list;
}

void OpCheck::isFloat(unsigned i) {
  if (!in(i).isFloat())
    fail("operand " + nameOf(i) + ": got " + toString(in(i).dtype) + ", wanted a float type");
}

void OpCheck::isFloatOrInt(unsigned i) {
  if (in(i).dtype == DType::Bool)
    fail("operand " + nameOf(i) + ": got bool, wanted a number type");
}

void OpCheck::isIndex(unsigned i) {
  if (in(i).dtype != DType::I64 && in(i).dtype != DType::I32)
    fail("operand " + nameOf(i) + ": got " + toString(in(i).dtype) + ", wanted i64 or i32");
}

void OpCheck::isType(unsigned i, DType dtype) {
  if (in(i).dtype != dtype)
    fail("operand " + nameOf(i) + ": got " + toString(in(i).dtype) + ", wanted " + toString(dtype));
}

void OpCheck::isStatisticOf(unsigned i, unsigned j) { isType(i, wideType(in(j).dtype)); }

void OpCheck::hasDims(unsigned i, llvm::ArrayRef<int64_t> dims) {
  if (llvm::ArrayRef<int64_t>(in(i).dims) != dims)
    fail("operand " + nameOf(i) + ": got dims " + formatDims(in(i).dims) + ", wanted " +
         formatDims(dims));
}

void OpCheck::hasRank(unsigned i, int64_t rank) {
  if (in(i).rank() != rank)
    fail("operand " + nameOf(i) + ": got dims " + formatDims(in(i).dims) + ", wanted rank " +
         llvm::Twine(rank));
}

void OpCheck::sameDType(unsigned i, unsigned j) {
  if (in(i).dtype != in(j).dtype)
    fail("element types differ: got " + nameOf(i) + " " + toString(in(i).dtype) + " and " +
         nameOf(j) + " " + toString(in(j).dtype) + ", wanted equal ones");
}

DType checkSumType(OpCheck &check, unsigned like, unsigned acc, llvm::ArrayRef<int64_t> dims) {
  DType dtype = check.flag("wide") ? wideType(check.in(like).dtype) : check.in(like).dtype;
  if (check.has(acc)) {
    check.isType(acc, dtype);
    check.hasDims(acc, dims);
  }
  return dtype;
}

std::optional<Dims> broadcastDims(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Dims dims(a.begin(), a.end());
  for (size_t i = 0, offset = a.size() - b.size(); i < b.size(); ++i) {
    int64_t &d = dims[offset + i];
    if (d == 1)
      d = b[i];
    else if (b[i] != 1 && b[i] != d)
      return std::nullopt;
  }
  return dims;
}

static llvm::Expected<Types> pointwise(const Op &op, bool comparison) {
  OpCheck check(op);
  Dims dims = check.in(0).dims;
  for (unsigned i = 1; i < op.numOperands(); ++i) {
    check.sameDType(0, i);
    std::optional<Dims> both = broadcastDims(dims, check.in(i).dims);
    if (!both) {
      check.fail("dims do not broadcast: got " + formatDims(dims) + " and " +
                 formatDims(check.in(i).dims) + ", wanted equal ones or 1");
      break;
    }
    dims = *both;
  }
  return check.done({Type(comparison ? DType::Bool : check.in(0).dtype, dims)});
}

llvm::Expected<Types> inferPointwise(const Op &op) {
  if (op.operand(0)->type().dtype == DType::Bool) {
    OpCheck check(op);
    check.fail("operand 0: got bool, wanted a number type");
    return check.error();
  }
  return pointwise(op, false);
}

llvm::Expected<Types> inferComparison(const Op &op) { return pointwise(op, true); }

llvm::Expected<Types> inferSame(const Op &op) { return Types{op.operand(0)->type()}; }

llvm::Expected<Types> inferSameFloat(const Op &op) {
  OpCheck check(op);
  check.isFloat(0);
  return check.done({check.in(0)});
}

void checkElementIndices(OpCheck &check) {
  const Type &data = check.in(0), &indices = check.in(1);
  check.isIndex(1);
  check.hasRank(1, data.rank());
  int64_t axis = check.failed() ? 0 : check.axis("axis", data.rank());
  for (int64_t i = 0; i < data.rank() && !check.failed(); ++i)
    if (i != axis && indices.dims[i] > data.dims[i])
      check.fail("operand indices: got dims " + formatDims(indices.dims) + ", wanted at most " +
                 formatDims(data.dims) + " beside the axis");
}

void checkReduction(OpCheck &check) {
  llvm::StringRef reduction = check.text("reduction");
  if (!parseScatter(reduction))
    check.fail("attribute 'reduction': got '" + reduction + "', wanted none, add, mul, max or min");
}

double numberOf(const Op &op, llvm::StringRef attr) {
  const int64_t *integer = std::get_if<int64_t>(op.attrs.find(attr));
  return integer ? double(*integer) : op.attrs.getFloat(attr);
}

double numberOf(const Op &op, llvm::StringRef attr, double otherwise) {
  return op.attrs.has(attr) ? numberOf(op, attr) : otherwise;
}

Ints normalAxes(llvm::ArrayRef<int64_t> axes, int64_t rank) {
  Ints list(axes.begin(), axes.end());
  for (int64_t &axis : list)
    axis = normalAxis(axis, rank);
  llvm::sort(list);
  return list;
}

Dims reducedDims(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> axes, bool keep) {
  Dims out;
  for (int64_t i = 0; i < int64_t(dims.size()); ++i)
    if (!llvm::is_contained(axes, i))
      out.push_back(dims[i]);
    else if (keep)
      out.push_back(1);
  return out;
}

std::optional<double> splatOf(const Value *value) {
  const Tensor *tensor = constantOf(value);
  if (!tensor || tensor->numElements() == 0)
    return std::nullopt;
  double first = tensor->asDouble(0);
  for (int64_t i = 1, n = tensor->numElements(); i < n; ++i)
    if (tensor->asDouble(i) != first)
      return std::nullopt;
  return first;
}

} // namespace shardc
