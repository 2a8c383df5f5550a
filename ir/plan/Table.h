// SPDX-License-Identifier: Apache-2.0
// Aligned tables and labelled lines that fit a terminal.
#pragma once

#include "ir/base/Screen.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace shardc {

class Table {
public:
  enum Align : uint8_t {
    Left,
    Right,
    Flexible, ///< left, and cut where lines are too long
    Spare     ///< right; left out, the last ones first, where lines are too long even so
  };
  struct Column {
    std::string title;
    Align align = Left;
  };
  explicit Table(std::vector<Column> columns, unsigned indent = 2)
      : columns_(std::move(columns)), indent_(indent) {}
  /// Requires: one cell a column.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(llvm::raw_ostream &os) const { print(os, screenColumns()); }
  /// A long list: on a terminal as `print`; elsewhere nothing is cut, so that names can be looked for.
  void printList(llvm::raw_ostream &os) const;

private:
  void print(llvm::raw_ostream &os, unsigned columns) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  unsigned indent_;
};

/// "model     text": the label once, then lines below each other, wrapped.
class Section {
public:
  Section(llvm::raw_ostream &os, llvm::StringRef label) : os_(os), label_(label) {}
  void line(const llvm::Twine &text);

private:
  static constexpr unsigned kLabel = 10;
  llvm::raw_ostream &os_;
  llvm::StringRef label_;
};

/// Columns that UTF-8 text takes (one a code point).
unsigned columnsOf(llvm::StringRef text);
/// At most `columns`, the middle replaced by "..".
std::string shortened(llvm::StringRef text, unsigned columns);

} // namespace shardc
