// SPDX-License-Identifier: Apache-2.0
// The text form of a graph: what is printed is what was parsed, and each mistake is named with its line.
#include "ir/graph/Text.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <gtest/gtest.h>
#include <set>

using namespace llvm;

namespace shardc {
namespace {

/// The message without the place, or "".
std::string mistakeIn(StringRef text) {
  auto graph = parseGraph(text, "g.ir");
  return graph ? "" : StringRef(toString(graph.takeError())).drop_front(5).str();
}
/// Of a graph whose third line, behind an input, is this one.
std::string mistakeInLine(const Twine &line) {
  return mistakeIn(("graph @g level=imported [\n  %x = input {name=\"x\"} : f32[2]\n  " + line + "\n]\n").str());
}

TEST(Text, PrintsWhatWasParsed) {
  constexpr StringRef kText = R"(graph @demo level=imported {step=3} [
  parameter "l.weight" file="m \\ \22.onnx" range=[120,64] as=f16 transposed : f32[4,4]
  parameter "l.tied" tie="o.tied" tie="p" frozen bucket=2 layer="l.0" zero : bf16[4]
  %x = input {name="x"} : f32[8,4] batch
  %w = param {name="l.weight"} : f32[4,4]
  %wt = transpose %w {perm=[1,0]} : f32[4,4]
  %y = matmul %x, %wt : f32[8,4] batch layer="l.0" at="/l/MatMul"
  %c = constant {value=dense<f32[2]: 1.5, -inf>} : f32[2]
  %s = constant {value=dense<i64[3]: splat -7>} : i64[3]
  output "y" %y
]
)";
  auto graph = parseGraph(kText, "demo.ir");
  ASSERT_TRUE(bool(graph)) << toString(graph.takeError());
  EXPECT_EQ(toString(**graph), kText.str());
  EXPECT_EQ((*graph)->parameters[0].source.file, "m \\ \".onnx");
}

TEST(Text, GraphsOfAllTestsOfPassesRoundTrip) {
  std::error_code code;
  std::set<std::string> files;
  for (sys::fs::directory_iterator i(SHARDC_SOURCE_DIR "/tests/passes", code), end; !code && i != end; i.increment(code))
    if (StringRef(i->path()).ends_with(".ir"))
      files.insert(i->path());
  size_t read = 0;
  for (const std::string &file : files) {
    auto buffer = MemoryBuffer::getFile(file);
    ASSERT_TRUE(bool(buffer)) << file;
    auto graph = parseGraph((*buffer)->getBuffer(), file);
    if (!graph) { // some have none, or a wrong one
      consumeError(graph.takeError());
      continue;
    }
    std::string once = toString(**graph);
    auto again = parseGraph(once, file);
    ASSERT_TRUE(bool(again)) << toString(again.takeError());
    EXPECT_EQ(toString(**again), once);
    ++read;
  }
  EXPECT_GT(read, 50u);
}

TEST(Text, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(mistakeIn(""), "1: syntax: got the end, wanted 'graph'");
  EXPECT_EQ(mistakeIn("graph @g level=done ["), "1: level: got done, wanted imported, step, sharded or scheduled");
  EXPECT_EQ(mistakeIn("graph @g level=step [\n"), "2: syntax: got the end, wanted ']'");
  EXPECT_EQ(mistakeInLine("%y = frobnicate %x : f32[2]"), "3: op: got frobnicate, wanted one that shardc-opt --list-ops shows");
  EXPECT_EQ(mistakeInLine("%y = tanh %z : f32[2]"), "3: value: got %z, wanted one that is defined above");
  EXPECT_EQ(mistakeInLine("%x = tanh %x : f32[2]"), "3: value: %x is defined twice");
  EXPECT_EQ(mistakeInLine("parameter \"p\" shared : f32[2]"),
            "3: syntax: got shared, wanted tie, frozen, bucket, layer, zero, file, range, as, transposed or ':'");
  EXPECT_EQ(mistakeInLine("parameter \"p\" bucket=-1 : f32[2]"), "3: bucket: got -1, wanted 0 to 1048575");
  EXPECT_EQ(mistakeInLine("parameter \"a\\zz\" : f32[2]"), "3: syntax: bad escape in a string");
  EXPECT_EQ(mistakeInLine("parameter \"p\" : f31[2]"), "3: element type: got f31, wanted one such as f32, i64, bool");
  EXPECT_EQ(mistakeInLine("parameter \"p\" : f32[-2]"), "3: type: dims -2 are negative or overflow");
}

TEST(Text, MistakesInConstants) {
  auto mistake = [](const Twine &value) { return mistakeInLine("%c = constant {value=" + value + "} : f32[2]"); };
  EXPECT_EQ(mistake("dense<f32[2]: 1>"), "3: syntax: got >, wanted ','");
  EXPECT_EQ(mistake("dense<f32[2]: 1, two>"), "3: syntax: got two, wanted a number");
  EXPECT_EQ(mistake("dense<i64[2]: 1, 2.5>"), "3: syntax: got 2.5, wanted an integer");
  EXPECT_EQ(mistake("dense<f32[2]: hex 0000803f>"), "3: dense: wrong number of hexadecimal digits");
  EXPECT_EQ(mistake("dense<u8[1073741825]: splat 0>"), "3: dense: got 1073741825 bytes, wanted at most 1073741824");
  EXPECT_EQ(mistake("[1, 2"), "3: syntax: got }, wanted ']'");
}

} // namespace
} // namespace shardc
