// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "tools/common/CommandLine.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc {
namespace {

struct Unit {
  StringRef name;
  int64_t bytes;
};
constexpr Unit kUnits[] = {
    {"KiB", 1LL << 10}, {"MiB", 1LL << 20}, {"GiB", 1LL << 30},    {"TiB", 1LL << 40}, {"KB", 1000},
    {"MB", 1000000},    {"GB", 1000000000}, {"TB", 1000000000000}, {"B", 1},           {"", 1},
};
constexpr double kLargest = 4e18; // below 2^62: sums of a few sizes cannot overflow

} // namespace

Expected<int64_t> parseSize(StringRef text) {
  StringRef digits = text.trim().take_while([](char c) { return isDigit(c) || c == '.'; });
  StringRef unit = text.trim().drop_front(digits.size()).ltrim();
  double number = 0;
  for (const Unit &known : kUnits)
    if (unit.equals_insensitive(known.name) && !digits.empty() && !digits.getAsDouble(number) &&
        number * double(known.bytes) < kLargest)
      return int64_t(number * double(known.bytes));
  return userError("size: got '" + text + "', wanted a number with a unit, such as 24GiB",
                   "units are B KiB MiB GiB TiB KB MB GB TB");
}

std::string formatSize(int64_t bytes) {
  std::string text;
  raw_string_ostream os(text);
  if (bytes < 1024) {
    os << bytes << " B";
    return text;
  }
  double number = double(bytes) / 1024;
  unsigned unit = 0;
  while (number >= 1000 && unit < 3) {
    number /= 1024;
    ++unit;
  }
  os << format("%.*f ", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number) << kUnits[unit].name;
  return text;
}

} // namespace shardc

bool cl::parser<shardc::Size>::parse(Option &option, StringRef, StringRef text,
                                     shardc::Size &value) {
  Expected<int64_t> bytes = shardc::parseSize(text);
  if (!bytes) {
    consumeError(bytes.takeError());
    return option.error("got '" + text + "', wanted a size, such as 24GiB");
  }
  value.bytes = *bytes;
  return false;
}

void cl::parser<shardc::Size>::printOptionDiff(const Option &option, shardc::Size value, OptVal,
                                               size_t width) const {
  printOptionName(option, width);
  outs() << "= " << value.bytes << '\n';
}
