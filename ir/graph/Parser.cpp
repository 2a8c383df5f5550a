// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/graph/Builder.h"
#include "ir/graph/LiteralParser.h"
#include "ir/graph/Text.h"

namespace shardc {
namespace {

constexpr int64_t kMostBuckets = 1 << 20;

class Parser : LiteralParser {
public:
  Parser(llvm::StringRef text, llvm::StringRef place) : LiteralParser(text, place) {}

  llvm::Expected<std::unique_ptr<Graph>> run() {
    graph_ = std::make_unique<Graph>();
    if (!parse())
      return userError(error_);
    return std::move(graph_);
  }

private:
  bool parameter() {
    Parameter p;
    if (!string(p.name))
      return false;
    while (!at(":")) {
      std::string text;
      if (accept("tie")) {
        if (!expect("=") || !string(text))
          return false;
        p.ties.push_back(text);
      } else if (accept("frozen")) {
        p.trainable = false;
      } else if (accept("bucket")) {
        if (!expect("=") || !integer(p.bucket))
          return false;
        if (p.bucket < 0 || p.bucket >= kMostBuckets)
          return fail("bucket: got " + llvm::Twine(p.bucket) + ", wanted 0 to " + llvm::Twine(kMostBuckets - 1));
      } else if (accept("layer")) {
        if (!expect("=") || !string(p.layer))
          return false;
      } else if (accept("zero")) {
        p.source.kind = ValueSource::Zero;
      } else if (accept("transposed")) {
        p.source.transposed = true;
      } else if (accept("file")) {
        p.source.kind = ValueSource::File;
        if (!expect("=") || !string(p.source.file))
          return false;
      } else if (accept("range")) {
        int64_t offset, length;
        if (!expect("=") || !expect("[") || !integer(offset) || !expect(",") || !integer(length) || !expect("]"))
          return false;
        p.source.offset = offset;
        p.source.length = length;
      } else if (accept("as")) {
        llvm::StringRef name;
        if (!expect("=") || !word(name, "an element type"))
          return false;
        std::optional<DType> dtype = parseDType(name);
        if (!dtype)
          return fail("element type: got " + name + ", wanted one such as f32");
        p.source.dtype = *dtype;
      } else {
        return unexpected("tie, frozen, bucket, layer, zero, file, range, as, transposed or ':'");
      }
    }
    if (!expect(":") || !type(p.type))
      return false;
    graph_->parameters.push_back(std::move(p));
    return true;
  }

  bool value(Value *&out) {
    llvm::StringRef name;
    if (!word(name, "a value such as %x"))
      return false;
    out = name.consume_front("%") ? graph_->findValue(name) : nullptr;
    return out || fail("value: got %" + name + ", wanted one that is defined above");
  }

  bool op() {
    llvm::SmallVector<std::string, 2> names;
    llvm::StringRef name;
    while (lexer_.token().kind == Token::Word && lexer_.token().text.starts_with("%")) {
      word(name, "");
      names.push_back(name.drop_front().str());
      if (graph_->findValue(names.back()))
        return fail("value: %" + names.back() + " is defined twice");
      if (!accept(",") && !expect("="))
        return false;
    }
    llvm::StringRef mnemonic;
    if (!word(mnemonic, "an op"))
      return false;
    const OpDef *def = findOp(mnemonic);
    if (!def)
      return fail("op: got " + mnemonic + ", wanted one that shardc-opt --list-ops shows");
    llvm::SmallVector<Value *> operands;
    while (!at("{") && !at(":")) {
      Value *operand = nullptr;
      if (!accept("_") && !value(operand))
        return false;
      operands.push_back(operand);
      if (!accept(","))
        break;
    }
    Attrs opAttrs;
    if (!attrs(opAttrs) || !expect(":"))
      return false;
    Types types;
    llvm::SmallVector<bool> batch;
    for (size_t i = 0; i < names.size(); ++i) {
      if (i && !expect(","))
        return false;
      types.emplace_back();
      if (!type(types.back()))
        return false;
      batch.push_back(accept("batch"));
    }
    Builder b(*graph_);
    b.phase = accept("backward") ? Phase::Backward : accept("update") ? Phase::Update : Phase::Forward;
    if (accept("layer") && !(expect("=") && string(b.layer)))
      return false;
    if (accept("at") && !(expect("=") && string(b.place)))
      return false;
    llvm::StringRef firstName = names.empty() ? llvm::StringRef() : llvm::StringRef(names[0]);
    // Sources say their own type.
    Op *made;
    if (def == &kInput || def == &kParam) {
      const Attr *source = opAttrs.find("name");
      if (!source || !std::holds_alternative<std::string>(*source))
        return fail(mnemonic + ": its name is missing: wanted {name=\"...\"}");
      if (!operands.empty() || names.size() != 1)
        return fail(mnemonic + ": got " + llvm::Twine(operands.size()) + " operands and " +
                    llvm::Twine(names.size()) + " results, wanted none and one");
      made = graph_->create(*def, operands, opAttrs, types, nullptr, firstName);
      made->phase = b.phase;
      made->layer = b.layer;
      made->place = b.place;
    } else {
      auto created = b.create(*def, operands, opAttrs, firstName);
      if (!created)
        return fail(llvm::toString(created.takeError()));
      made = *created;
    }
    if (made->numResults() != names.size())
      return fail(mnemonic + ": results: got " + llvm::Twine(names.size()) + ", wanted " +
                  llvm::Twine(made->numResults()));
    for (size_t i = 0; i < names.size(); ++i) {
      if (!(made->result(i)->type() == types[i]))
        return fail("%" + names[i] + ": type: got " + toString(types[i]) + ", wanted " +
                    toString(made->result(i)->type()));
      graph_->rename(made->result(i), names[i]);
      made->result(i)->setBatchMajor(batch[i]);
    }
    if (def == &kParam)
      for (Parameter &p : graph_->parameters)
        if (made->attrs.getString("name") == p.name)
          p.value = made->result();
    return true;
  }

  bool parse() {
    llvm::StringRef name, level;
    if (!expect("graph") || !word(name, "@name") || !expect("level") || !expect("=") || !word(level, "a level"))
      return false;
    name.consume_front("@");
    graph_->name = name.str();
    bool known = false;
    for (Level l : {Level::Imported, Level::Step, Level::Sharded, Level::Scheduled})
      if (level == toString(l)) {
        graph_->level = l;
        known = true;
      }
    if (!known)
      return fail("level: got " + level + ", wanted imported, step, sharded or scheduled");
    if (!attrs(graph_->attrs) || !expect("["))
      return false;
    while (!at("]")) {
      if (lexer_.token().kind == Token::End)
        return unexpected("']'");
      if (accept("parameter")) {
        if (!parameter())
          return false;
      } else if (accept("output")) {
        std::string outputName;
        Value *v;
        if (!string(outputName) || !value(v))
          return false;
        graph_->addOutput(outputName, v);
      } else if (!op()) {
        return false;
      }
    }
    return expect("]");
  }

  std::unique_ptr<Graph> graph_;
};

} // namespace

llvm::Expected<std::unique_ptr<Graph>> parseGraph(llvm::StringRef text, llvm::StringRef place) {
  return Parser(text, place).run();
}

} // namespace shardc
