// SPDX-License-Identifier: Apache-2.0
#include "runtime/Npy.h"
#include "ir/base/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"

namespace shardc {

using llvm::StringRef;

llvm::Expected<size_t> npyHeaderSize(StringRef prelude, const llvm::Twine &place) {
  if (prelude.size() < kNpyPrelude || !prelude.starts_with("\x93NUMPY"))
    return userError(place + ": is no .npy array: wrong first bytes");
  unsigned version = uint8_t(prelude[6]);
  if (version < 1 || version > 3)
    return userError(place + ": unknown .npy version: got " + llvm::Twine(version) +
                     ", wanted 1 to 3");
  size_t size = version == 1 ? 10 + size_t(llvm::support::endian::read16le(prelude.data() + 8))
                             : 12 + size_t(llvm::support::endian::read32le(prelude.data() + 8));
  if (size > (1 << 20) || size < kNpyPrelude)
    return userError(place + ": .npy header is damaged: got " + llvm::Twine(size) +
                     " bytes, wanted at most 1 MiB");
  return size;
}

namespace {

/// Just enough of Python's literals: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
struct Scanner {
  StringRef rest;

  bool eat(char c) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&c, 1));
  }
  std::optional<StringRef> string() {
    rest = rest.ltrim();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return std::nullopt;
    size_t end = rest.find(rest[0], 1);
    if (end == StringRef::npos)
      return std::nullopt;
    StringRef text = rest.slice(1, end);
    rest = rest.drop_front(end + 1);
    return text;
  }
  std::optional<bool> boolean() {
    rest = rest.ltrim();
    if (rest.consume_front("True"))
      return true;
    if (rest.consume_front("False"))
      return false;
    return std::nullopt;
  }
  bool shape(Dims &dims) {
    if (!eat('('))
      return false;
    while (!eat(')')) {
      int64_t dim;
      rest = rest.ltrim();
      if (rest.consumeInteger(10, dim) || dim < 0)
        return false;
      rest.consume_front("L"); // written by Python 2
      dims.push_back(dim);
      if (!eat(',') && !rest.ltrim().starts_with(")"))
        return false;
    }
    return true;
  }
  /// The list of a structured type: passed over up to the bracket that closes it.
  bool list() {
    if (!eat('['))
      return false;
    for (int depth = 1; depth > 0;) {
      if (string())
        continue;
      if (rest.empty())
        return false;
      depth += (rest[0] == '[') - (rest[0] == ']');
      rest = rest.drop_front();
    }
    return true;
  }
};

std::optional<DType> dtypeOf(StringRef descr) {
  return llvm::StringSwitch<std::optional<DType>>(descr)
      .Case("<f4", DType::F32)
      .Case("<f8", DType::F64)
      .Case("<f2", DType::F16)
      .Case("<i4", DType::I32)
      .Case("<i8", DType::I64)
      .Case("|u1", DType::U8)
      .Case("|b1", DType::Bool)
      .Default(std::nullopt);
}

} // namespace

llvm::Error parseNpyHeader(StringRef header, const llvm::Twine &place, FileArray &array) {
  auto damaged = [&](const llvm::Twine &why) {
    return userError(place + ": .npy header is damaged: " + why);
  };
  Scanner scan{header.drop_front(uint8_t(header[6]) == 1 ? 10 : 12)};
  bool fortran = false;
  unsigned seen = 0;
  if (!scan.eat('{'))
    return damaged("wanted a dict");
  while (!scan.eat('}')) {
    std::optional<StringRef> key = scan.string();
    if (!key || !scan.eat(':'))
      return damaged("wanted 'key': value");
    unsigned bit = 0;
    if (*key == "descr") {
      bit = 1;
      if (std::optional<StringRef> descr = scan.string())
        array.typeName = descr->str();
      else if (scan.list())
        array.typeName = "structured";
      else
        return damaged("wanted a dtype after 'descr'");
    } else if (*key == "fortran_order") {
      bit = 2;
      std::optional<bool> value = scan.boolean();
      if (!value)
        return damaged("wanted True or False after 'fortran_order'");
      fortran = *value;
    } else if (*key == "shape") {
      bit = 4;
      array.dims.clear();
      if (!scan.shape(array.dims))
        return damaged("wanted a tuple of integers after 'shape'");
    }
    if (!bit || (seen & bit))
      return damaged("wanted each of descr, fortran_order and shape once");
    seen |= bit;
    if (!scan.eat(',') && !scan.rest.ltrim().starts_with("}"))
      return damaged("wanted a comma");
  }
  if (seen != 7)
    return damaged("wanted each of descr, fortran_order and shape once");
  array.dtype = dtypeOf(array.typeName);
  if (!checkedNumElements(array.dims))
    return userError(place + ": shape is too large: got " + formatDims(array.dims));
  if (fortran) {
    array.dtype = std::nullopt;
    array.typeName += " in Fortran order";
  }
  return llvm::Error::success();
}

} // namespace shardc
