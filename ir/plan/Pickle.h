// SPDX-License-Identifier: Apache-2.0
// Writes Python pickles (protocol 4) of dictionaries, lists, text and whole numbers, with only the opcodes that
// PyTorch's memory viewer reads. A text is written once, and referred to where it comes again.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace shardc {

/// One value at the top: `object` or `list`, then `finish`. Inside an object: attributes only; inside a list: items only.
class Pickle {
public:
  using Write = llvm::function_ref<void()>;
  explicit Pickle(llvm::raw_ostream &os);
  void finish();

  void object(Write attributes);
  void list(Write items);
  void attribute(llvm::StringRef key, llvm::StringRef value);
  void attribute(llvm::StringRef key, uint64_t value);
  void attributeList(llvm::StringRef key, Write items);
  void itemObject(Write attributes);
  void itemList(Write items);
  void item(uint64_t value);

private:
  void text(llvm::StringRef value); ///< what is no UTF-8 is replaced
  void number(uint64_t value);
  void little(uint64_t value, unsigned bytes);

  llvm::raw_ostream &os_;
  llvm::StringMap<uint32_t> memo_; ///< by text: its number, in the order of MEMOIZE
};

} // namespace shardc
