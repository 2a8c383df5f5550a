// SPDX-License-Identifier: Apache-2.0
// Opcodes: Python's pickletools. Long lists are appended to item by item: the viewer's APPENDS passes them as arguments
// of one call, of which there may not be many.
#include "ir/plan/Pickle.h"
#include "ir/plan/Text.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc {
namespace {
enum Opcode : unsigned char {
  kProto = 0x80,
  kStop = '.',
  kMark = '(',
  kEmptyDict = '}',
  kSetItems = 'u',
  kEmptyList = ']',
  kAppend = 'a',
  kBinInt = 'J',
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode = 'X',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
};
} // namespace

Pickle::Pickle(raw_ostream &os) : os_(os) { os_ << kProto << '\x04'; }

void Pickle::finish() { os_ << kStop; }

void Pickle::object(Write attributes) {
  os_ << kEmptyDict << kMark;
  attributes();
  os_ << kSetItems;
}

void Pickle::list(Write items) {
  os_ << kEmptyList;
  items();
}

void Pickle::attribute(StringRef key, StringRef value) {
  text(key);
  text(value);
}

void Pickle::attribute(StringRef key, uint64_t value) {
  text(key);
  number(value);
}

void Pickle::attributeList(StringRef key, Write items) {
  text(key);
  list(items);
}

void Pickle::itemObject(Write attributes) {
  object(attributes);
  os_ << kAppend;
}

void Pickle::itemList(Write items) {
  list(items);
  os_ << kAppend;
}

void Pickle::item(uint64_t value) {
  number(value);
  os_ << kAppend;
}

void Pickle::little(uint64_t value, unsigned bytes) {
  for (; bytes; --bytes, value >>= 8)
    os_ << static_cast<unsigned char>(value & 0xff);
}

void Pickle::number(uint64_t value) {
  if (value < (uint64_t(1) << 31)) {
    os_ << kBinInt;
    little(value, 4);
    return;
  }
  // Two's complement of as many bytes as it says: a ninth where the eighth would read as a sign.
  unsigned bytes = value >> 63 ? 9 : 8;
  os_ << kLong1 << static_cast<unsigned char>(bytes);
  little(value, 8);
  little(0, bytes - 8);
}

void Pickle::text(StringRef value) {
  auto [known, isNew] = memo_.try_emplace(value, memo_.size());
  if (!isNew) {
    bool isShort = known->second < 256;
    os_ << (isShort ? kBinGet : kLongBinGet);
    little(known->second, isShort ? 1 : 4);
    return;
  }
  std::string fixed = utf8(value);
  bool isShort = fixed.size() < 256;
  os_ << (isShort ? kShortBinUnicode : kBinUnicode);
  little(fixed.size(), isShort ? 1 : 4);
  os_ << fixed << kMemoize;
}

} // namespace shardc
