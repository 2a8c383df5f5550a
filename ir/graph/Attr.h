// SPDX-License-Identifier: Apache-2.0
// Attributes of an op: a few named, typed constants.
#pragma once

#include "ir/base/Tensor.h"
#include <string>
#include <variant>
#include <vector>

namespace shardc {

using Ints = llvm::SmallVector<int64_t, 4>;
/// In the text form: 3   2.5   "text"   [1,2]   dense<...>. A bool is the integer 0 or 1.
using Attr = std::variant<int64_t, double, std::string, Ints, Tensor>;

/// Ordered by insertion, few entries, so a flat list.
class Attrs {
public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<llvm::StringRef, Attr>> list) {
    for (auto &[name, value] : list)
      set(name, value);
  }
  const Attr *find(llvm::StringRef name) const {
    for (auto &[key, value] : list_)
      if (key == name)
        return &value;
    return nullptr;
  }
  void set(llvm::StringRef name, Attr value) {
    for (auto &[key, old] : list_)
      if (key == name) {
        old = std::move(value);
        return;
      }
    list_.emplace_back(name.str(), std::move(value));
  }
  void erase(llvm::StringRef name) {
    std::erase_if(list_, [&](auto &entry) { return entry.first == name; });
  }
  bool has(llvm::StringRef name) const { return find(name); }
  /// Requires: present, of that type.
  int64_t getInt(llvm::StringRef name) const { return std::get<int64_t>(*find(name)); }
  /// An integer counts as a number, as in `infer`: IR text may say 1 for 1.0.
  double getFloat(llvm::StringRef name) const {
    const Attr &attr = *find(name);
    return std::holds_alternative<int64_t>(attr) ? double(std::get<int64_t>(attr)) : std::get<double>(attr);
  }
  llvm::StringRef getString(llvm::StringRef name) const { return std::get<std::string>(*find(name)); }
  const Ints &getInts(llvm::StringRef name) const { return std::get<Ints>(*find(name)); }
  const Tensor &getTensor(llvm::StringRef name) const { return std::get<Tensor>(*find(name)); }
  int64_t getInt(llvm::StringRef name, int64_t otherwise) const { return has(name) ? getInt(name) : otherwise; }
  double getFloat(llvm::StringRef name, double otherwise) const { return has(name) ? getFloat(name) : otherwise; }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  bool empty() const { return list_.empty(); }
  bool operator==(const Attrs &o) const { return list_ == o.list_; }

private:
  std::vector<std::pair<std::string, Attr>> list_;
};

} // namespace shardc
