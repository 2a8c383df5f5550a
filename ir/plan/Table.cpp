// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Table.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <cassert>

using namespace llvm;

namespace shardc {
namespace {

bool beginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

/// Bytes of the first `count` code points.
size_t prefixBytes(StringRef text, unsigned count) {
  size_t i = 0;
  while (i < text.size() && (count > 0 || !beginsCodePoint(text[i])))
    count -= beginsCodePoint(text[i++]);
  return i;
}

} // namespace

unsigned columnsOf(StringRef text) { return unsigned(count_if(text, beginsCodePoint)); }

std::string shortened(StringRef text, unsigned columns) {
  unsigned have = columnsOf(text);
  if (have <= columns)
    return text.str();
  if (columns <= 2)
    return std::string(columns, '.');
  unsigned head = (columns - 2) / 2, tail = columns - 2 - head;
  return (Twine(text.take_front(prefixBytes(text, head))) + ".." +
          text.drop_front(prefixBytes(text, have - tail)))
      .str();
}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::print(raw_ostream &os) const {
  std::vector<unsigned> widths;
  for (const Column &column : columns_)
    widths.push_back(columnsOf(column.title));
  for (auto &row : rows_)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columnsOf(row[i]));
  // What is too much is taken from the widest flexible column, again and again.
  unsigned total = indent_ + 2 * unsigned(columns_.size() - 1);
  for (unsigned width : widths)
    total += width;
  while (total > kScreenColumns) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].align == Flexible && widths[i] > 8 &&
          (widest == columns_.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == columns_.size())
      break;
    --widths[widest];
    --total;
  }
  auto printRow = [&](auto cell) {
    std::string line(indent_, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      std::string text = shortened(cell(i), widths[i]);
      std::string pad(widths[i] - columnsOf(text), ' ');
      line += columns_[i].align == Right ? pad + text : text + pad;
      line += "  ";
    }
    os << StringRef(line).rtrim() << '\n';
  };
  printRow([&](size_t i) { return columns_[i].title; });
  for (auto &row : rows_)
    printRow([&](size_t i) { return row[i]; });
}

void Section::line(const Twine &text) {
  std::string rest = text.str();
  do {
    size_t take = rest.size();
    if (columnsOf(rest) > kScreenColumns - kLabel) {
      take = rest.rfind(' ', kScreenColumns - kLabel);
      if (take == std::string::npos || take == 0)
        take = rest.size();
    }
    os_ << left_justify(label_, kLabel) << StringRef(rest).take_front(take) << '\n';
    label_ = "";
    rest = StringRef(rest).drop_front(take).ltrim().str();
  } while (!rest.empty());
}

} // namespace shardc
