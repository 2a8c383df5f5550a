// SPDX-License-Identifier: Apache-2.0
// Bytes as Python's pickletools describes them. (tests/tools/inspect-memory-viz.test reads pickles with Python.)
#include "ir/plan/Pickle.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

template <typename Write> std::string pickled(Write write) {
  std::string out;
  raw_string_ostream os(out);
  Pickle pickle(os);
  write(pickle);
  pickle.finish();
  return out;
}

TEST(Pickle, WritesObjectsAndLists) {
  std::string out = pickled([](Pickle &p) {
    p.object([&] {
      p.attribute("a", 258);
      p.attributeList("l", [&] { p.itemList([] {}); });
    });
  });
  EXPECT_EQ(out, std::string("\x80\x04}(\x8c\x01"
                             "a\x94J\x02\x01\x00\x00\x8c\x01"
                             "l\x94]]au.",
                             22));
}

TEST(Pickle, RefersToATextThatComesAgain) {
  std::string out = pickled([](Pickle &p) { p.object([&] { p.attribute("a", "a"); }); });
  EXPECT_EQ(out, std::string("\x80\x04}(\x8c\x01"
                             "a\x94h\x00u.",
                             12));
}

TEST(Pickle, WritesLargeNumbersAsSigned) {
  std::string out = pickled([](Pickle &p) { p.object([&] { p.attribute("a", uint64_t(1) << 31); }); });
  EXPECT_NE(out.find(std::string("\x8a\x08\x00\x00\x00\x80\x00\x00\x00\x00", 10)), std::string::npos);
  out = pickled([](Pickle &p) { p.object([&] { p.attribute("a", ~uint64_t(0)); }); });
  EXPECT_NE(out.find(std::string("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", 11)), std::string::npos);
}

TEST(Pickle, TakesLongTextsAndManyOfThem) {
  std::string out = pickled([](Pickle &p) { p.object([&] { p.attribute("a", std::string(300, 'x')); }); });
  EXPECT_NE(out.find(std::string("X\x2c\x01\x00\x00xxx", 8)), std::string::npos);
  // The 301st text is number 300: four bytes.
  out = pickled([](Pickle &p) {
    p.object([&] {
      for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 301; ++i)
          p.attribute("k", "text" + std::to_string(i));
    });
  });
  EXPECT_NE(out.find(std::string("j\x2c\x01\x00\x00", 5)), std::string::npos);
}

TEST(Pickle, ReplacesWhatIsNoText) {
  std::string out = pickled([](Pickle &p) { p.object([&] { p.attribute("a", "\xff"); }); });
  EXPECT_NE(out.find("\xef\xbf\xbd"), std::string::npos); // U+FFFD
}

} // namespace
} // namespace shardc
