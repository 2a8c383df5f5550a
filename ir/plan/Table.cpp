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

void Table::printList(raw_ostream &os) const { print(os, onTerminal() ? screenColumns() : ~0u); }

void Table::print(raw_ostream &os, unsigned columns) const {
  std::vector<unsigned> widths;
  for (const Column &column : columns_)
    widths.push_back(columnsOf(column.title));
  for (auto &row : rows_)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columnsOf(row[i]));
  unsigned gap = 2, total = indent_ + gap * unsigned(columns_.size() - 1);
  for (unsigned width : widths)
    total += width;
  std::vector<bool> shown(columns_.size(), true);
  // What is too much is taken from the widest flexible column, again and again, while it is legible; then
  // from the gaps, from spare columns, and at last from what is legible.
  auto narrow = [&](unsigned least) {
    while (total > columns) {
      size_t widest = columns_.size();
      for (size_t i = 0; i < columns_.size(); ++i)
        if (columns_[i].align == Flexible && widths[i] > least &&
            (widest == columns_.size() || widths[i] > widths[widest]))
          widest = i;
      if (widest == columns_.size())
        return;
      --widths[widest];
      --total;
    }
  };
  narrow(30);
  if (total > columns) {
    gap = 1;
    total -= unsigned(columns_.size() - 1);
    narrow(24);
  }
  for (size_t i = columns_.size(); total > columns && i-- > 0;)
    if (columns_[i].align == Spare) {
      shown[i] = false;
      total -= widths[i] + gap;
    }
  narrow(8);
  auto printRow = [&](auto cell) {
    std::string line(indent_, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!shown[i])
        continue;
      std::string text = shortened(cell(i), widths[i]);
      std::string pad(widths[i] - columnsOf(text), ' ');
      line += columns_[i].align == Right || columns_[i].align == Spare ? pad + text : text + pad;
      line += std::string(gap, ' ');
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
    if (columnsOf(rest) > screenColumns() - kLabel) {
      take = rest.rfind(' ', screenColumns() - kLabel);
      if (take == std::string::npos || take == 0)
        take = rest.size();
    }
    os_ << left_justify(label_, kLabel) << StringRef(rest).take_front(take) << '\n';
    label_ = "";
    rest = StringRef(rest).drop_front(take).ltrim().str();
  } while (!rest.empty());
}

} // namespace shardc
