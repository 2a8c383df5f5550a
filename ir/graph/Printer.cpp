// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Text.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

/// Up to this many elements are readable numbers, more are hexadecimal bytes.
static constexpr int64_t kReadable = 16;

static void printFloat(double value, llvm::raw_ostream &os) {
  if (value != value || value - value != 0)
    os << (value != value ? "nan" : value > 0 ? "inf" : "-inf");
  else {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
    // The shortest spelling that reads back the same.
    for (int digits = 1; digits < 17; ++digits) {
      std::string shorter;
      llvm::raw_string_ostream(shorter) << llvm::format("%.*g", digits, value);
      if (strtod(shorter.c_str(), nullptr) == value) {
        text = shorter;
        break;
      }
    }
    os << text << (text.find_first_of(".en") == std::string::npos ? ".0" : "");
  }
}

static void printTensor(const Tensor &t, llvm::raw_ostream &os) {
  os << "dense<" << toString(Type(t.dtype(), t.dims())) << ":";
  int64_t n = t.numElements(), size = byteSize(t.dtype());
  auto bytes = static_cast<const char *>(t.bytes());
  bool splat = n > 1 && memcmp(bytes, bytes + size, (n - 1) * size) == 0;
  if (n <= kReadable || splat) {
    os << (splat ? " splat" : "");
    for (int64_t i = 0; i < (splat ? 1 : n); ++i) {
      os << (i ? ", " : " ");
      if (isFloat(t.dtype()))
        printFloat(t.asDouble(i), os);
      else
        os << t.asInt(i);
    }
  } else {
    os << " hex " << llvm::toHex(llvm::StringRef(bytes, n * size), /*LowerCase=*/true);
  }
  os << ">";
}

static void printString(llvm::StringRef text, llvm::raw_ostream &os) {
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
}

static void printAttr(const Attr &attr, llvm::raw_ostream &os) {
  if (auto *i = std::get_if<int64_t>(&attr))
    os << *i;
  else if (auto *f = std::get_if<double>(&attr))
    printFloat(*f, os);
  else if (auto *s = std::get_if<std::string>(&attr))
    printString(*s, os);
  else if (auto *ints = std::get_if<Ints>(&attr)) {
    os << "[";
    llvm::interleave(*ints, os, ",");
    os << "]";
  } else
    printTensor(std::get<Tensor>(attr), os);
}

static void printAttrs(const Attrs &attrs, llvm::raw_ostream &os) {
  if (attrs.empty())
    return;
  os << " {";
  llvm::StringRef separator = "";
  for (auto &[name, value] : attrs) {
    os << separator << name << "=";
    printAttr(value, os);
    separator = ", ";
  }
  os << "}";
}

void printOp(const Op &op, llvm::raw_ostream &os) {
  for (unsigned i = 0; i < op.numResults(); ++i)
    os << (i ? ", %" : "%") << op.result(i)->name();
  os << (op.numResults() ? " = " : "") << op.mnemonic();
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    os << (i ? ", " : " ");
    if (op.operand(i))
      os << "%" << op.operand(i)->name();
    else
      os << "_";
  }
  printAttrs(op.attrs, os);
  os << " :";
  for (unsigned i = 0; i < op.numResults(); ++i)
    os << (i ? ", " : " ") << toString(op.result(i)->type()) << (op.result(i)->batchMajor() ? " batch" : "");
  if (op.phase != Phase::Forward)
    os << (op.phase == Phase::Backward ? " backward" : " update");
  if (!op.layer.empty()) {
    os << " layer=";
    printString(op.layer, os);
  }
  if (!op.place.empty()) {
    os << " at=";
    printString(op.place, os);
  }
}

static void printParameter(const Parameter &p, llvm::raw_ostream &os) {
  os << "  parameter ";
  printString(p.name, os);
  for (llvm::StringRef tie : p.ties) {
    os << " tie=";
    printString(tie, os);
  }
  os << (p.trainable ? "" : " frozen");
  if (p.bucket >= 0) {
    os << " bucket=" << p.bucket << " layer=";
    printString(p.layer, os);
  }
  const ValueSource &s = p.source;
  if (s.kind == ValueSource::Zero)
    os << " zero";
  if (s.kind == ValueSource::File) {
    os << " file=";
    printString(s.file, os);
    os << " range=[" << s.offset << "," << s.length << "] as=" << toString(s.dtype) << (s.transposed ? " transposed" : "");
  }
  os << " : " << toString(p.type) << "\n";
}

void printGraph(const Graph &graph, llvm::raw_ostream &os) {
  os << "graph @" << graph.name << " level=" << toString(graph.level);
  printAttrs(graph.attrs, os);
  os << " [\n";
  for (const Parameter &p : graph.parameters)
    printParameter(p, os);
  for (const Op &op : graph.ops()) {
    os << "  ";
    printOp(op, os);
    os << "\n";
  }
  for (auto &[name, value] : graph.outputs()) {
    os << "  output ";
    printString(name, os);
    os << " %" << value->name() << "\n";
  }
  os << "]\n";
}

std::string toString(const Graph &graph) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printGraph(graph, os);
  return text;
}

} // namespace shardc
