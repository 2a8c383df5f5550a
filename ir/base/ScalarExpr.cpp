// SPDX-License-Identifier: Apache-2.0
// Parser of scalar programs: text -> tree -> typed straight-line code. Plans are untrusted, so
// nesting and length are bounded and every mistake is an error with a column.
#include "ir/base/ScalarExpr.h"
#include "ir/base/Error.h"
#include "ir/base/ScalarTree.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

using namespace scalar_tree;

/// Reads lines; expressions become nodes of `tree`, which the typer turns into code at once.
class Parser {
public:
  Parser(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> inputNames,
         llvm::ArrayRef<DType> inputs, llvm::ArrayRef<NamedNumber> parameters)
      : text_(text), inputNames_(inputNames), inputs_(inputs), parameters_(parameters),
        typer_(tree_) {}

  llvm::Expected<ScalarProgram> program(llvm::ArrayRef<llvm::StringRef> outputs) {
    while (skipBlanks(), at_ < text_.size() && !failed())
      line();
    if (!failed())
      for (llvm::StringRef name : outputs) {
        const Line *line = findLine(name);
        if (!line)
          fail(at_, "output '" + name + "': got no line of that name, wanted one");
        else
          typer_.program.outputs.push_back(line->reg);
      }
    return finish();
  }

  llvm::Expected<ScalarProgram> expression(DType result) {
    int node = conditional();
    skipBlanks();
    if (!failed() && at_ < text_.size())
      fail(at_, "got '" + text_.substr(at_, 1) + "', wanted the end");
    if (!failed())
      typer_.program.outputs.push_back(typer_.emitLine(node, result));
    return finish();
  }

private:
  struct Line {
    llvm::StringRef name;
    int16_t reg;
    DType dtype;
  };
  static constexpr unsigned kMaxNesting = 200;

  llvm::Expected<ScalarProgram> finish() {
    if (!failed())
      return std::move(typer_.program);
    return userError("column " + llvm::Twine(tree_.errorColumn + 1) + ": " + tree_.error);
  }
  bool failed() const { return !tree_.error.empty(); }
  int fail(size_t column, const llvm::Twine &what) { return tree_.fail(column, what); }

  const Line *findLine(llvm::StringRef name) const {
    for (const Line &line : llvm::reverse(lines_))
      if (line.name == name)
        return &line;
    return nullptr;
  }

  void line() {
    size_t column = at_;
    llvm::StringRef name = identifier();
    if (name.empty()) {
      fail(column, "got '" + text_.substr(column, 1) + "', wanted a line 'name : dtype = ...;'");
      return;
    }
    if (findLine(name) || llvm::is_contained(inputNames_, name)) {
      fail(column, "name '" + name + "': got it twice, wanted distinct ones");
      return;
    }
    if (!expect(":"))
      return;
    skipBlanks();
    column = at_;
    llvm::StringRef typeName = identifier();
    std::optional<DType> dtype = parseDType(typeName);
    if (!dtype) {
      fail(column, "got '" + typeName + "', wanted an element type such as f32");
      return;
    }
    if (!expect("="))
      return;
    int node = conditional();
    if (failed())
      return;
    int16_t reg = typer_.emitLine(node, *dtype);
    lines_.push_back({name, reg, *dtype});
    skipBlanks();
    if (at_ < text_.size())
      expect(";");
  }

  // Tokens.
  void skipBlanks() {
    while (at_ < text_.size() && llvm::isSpace(text_[at_]))
      ++at_;
  }
  bool accept(llvm::StringRef token) {
    skipBlanks();
    if (!text_.substr(at_).starts_with(token))
      return false;
    at_ += token.size();
    return true;
  }
  bool expect(llvm::StringRef token) {
    if (failed())
      return false;
    if (accept(token))
      return true;
    fail(at_, at_ < text_.size() ? "got '" + text_.substr(at_, 1) + "', wanted '" + token + "'"
                                 : "got the end, wanted '" + token + "'");
    return false;
  }
  llvm::StringRef identifier() {
    skipBlanks();
    size_t begin = at_;
    while (at_ < text_.size() && (llvm::isAlnum(text_[at_]) || text_[at_] == '_') &&
           (at_ > begin || !llvm::isDigit(text_[at_])))
      ++at_;
    return text_.slice(begin, at_);
  }

  // Grammar, loosest first.
  int conditional() {
    if (++nesting_ > kMaxNesting)
      return fail(at_, "nesting: got more than 200 levels, wanted fewer");
    int condition = binary(0);
    size_t column = at_;
    if (!failed() && accept("?")) {
      int yes = conditional();
      if (!expect(":"))
        return -1;
      int no = conditional();
      condition = tree_.select(column, condition, yes, no);
    }
    --nesting_;
    return condition;
  }

  struct Operator {
    const char *token;
    ScalarCode code;
  };
  /// By level of precedence; a token that is the beginning of another comes after it.
  static llvm::ArrayRef<Operator> operatorsAt(unsigned level) {
    static constexpr Operator kOr[] = {{"||", ScalarCode::Or}};
    static constexpr Operator kAnd[] = {{"&&", ScalarCode::And}};
    static constexpr Operator kEqual[] = {{"==", ScalarCode::Equal}, {"!=", ScalarCode::Not}};
    static constexpr Operator kOrder[] = {{"<=", ScalarCode::LessEqual},
                                          {">=", ScalarCode::GreaterEqual},
                                          {"<", ScalarCode::Less},
                                          {">", ScalarCode::Greater}};
    static constexpr Operator kSum[] = {{"+", ScalarCode::Add}, {"-", ScalarCode::Sub}};
    static constexpr Operator kProduct[] = {
        {"*", ScalarCode::Mul}, {"/", ScalarCode::Div}, {"%", ScalarCode::Mod}};
    static constexpr llvm::ArrayRef<Operator> kLevels[] = {kOr,    kAnd, kEqual,
                                                           kOrder, kSum, kProduct};
    return level < std::size(kLevels) ? kLevels[level] : llvm::ArrayRef<Operator>();
  }

  int binary(unsigned level) {
    llvm::ArrayRef<Operator> operators = operatorsAt(level);
    if (operators.empty())
      return unary();
    int left = binary(level + 1);
    for (bool more = true; more && !failed();) {
      more = false;
      for (const Operator &op : operators) {
        skipBlanks();
        size_t column = at_;
        if (!accept(op.token))
          continue;
        int right = binary(level + 1);
        if (op.code == ScalarCode::Not) // !=
          left = tree_.unary(column, ScalarCode::Not,
                             tree_.binary(column, ScalarCode::Equal, left, right));
        else
          left = tree_.binary(column, op.code, left, right);
        more = true;
        break;
      }
    }
    return left;
  }

  int unary() {
    skipBlanks();
    size_t column = at_;
    bool negative = accept("-");
    if (!negative && !(text_.substr(at_).starts_with("!") && accept("!")))
      return primary();
    if (++nesting_ > kMaxNesting)
      return fail(at_, "nesting: got more than 200 levels, wanted fewer");
    int operand = unary();
    --nesting_;
    return tree_.unary(column, negative ? ScalarCode::Neg : ScalarCode::Not, operand);
  }

  int primary() {
    skipBlanks();
    size_t column = at_;
    if (accept("(")) {
      int node = conditional();
      expect(")");
      return node;
    }
    if (at_ < text_.size() && (llvm::isDigit(text_[at_]) || text_[at_] == '.'))
      return number();
    llvm::StringRef name = identifier();
    if (name.empty())
      return fail(column, at_ < text_.size() ? "got '" + text_.substr(at_, 1) + "', wanted a value"
                                             : llvm::Twine("got the end, wanted a value"));
    if (accept("("))
      return call(column, name);
    return named(column, name);
  }

  int number() {
    size_t begin = at_;
    auto digits = [&] {
      while (at_ < text_.size() && (llvm::isDigit(text_[at_]) || text_[at_] == '.'))
        ++at_;
    };
    digits();
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-'))
        ++at_;
      digits();
    }
    double value;
    llvm::StringRef token = text_.slice(begin, at_);
    if (token.getAsDouble(value))
      return fail(begin, "got '" + token + "', wanted a number");
    return tree_.number(begin, value);
  }

  int named(size_t column, llvm::StringRef name) {
    if (const Line *line = findLine(name))
      return tree_.reg(column, line->reg, line->dtype);
    for (size_t i = 0; i < inputNames_.size(); ++i)
      if (inputNames_[i] == name && i < inputs_.size())
        return tree_.input(column, i, inputs_[i]);
    for (const NamedNumber &parameter : parameters_)
      if (parameter.name == name)
        return tree_.number(column, parameter.value);
    if (name == "inf")
      return tree_.number(column, std::numeric_limits<double>::infinity());
    if (name == "nan")
      return tree_.number(column, std::numeric_limits<double>::quiet_NaN());
    return fail(column, "got '" + name + "', wanted an input, an earlier line or a number");
  }

  int call(size_t column, llvm::StringRef name) {
    llvm::SmallVector<int, 3> args;
    do
      args.push_back(conditional());
    while (!failed() && accept(","));
    expect(")");
    return failed() ? -1 : tree_.call(column, name, args);
  }

  llvm::StringRef text_;
  llvm::ArrayRef<llvm::StringRef> inputNames_;
  llvm::ArrayRef<DType> inputs_;
  llvm::ArrayRef<NamedNumber> parameters_;
  size_t at_ = 0;
  unsigned nesting_ = 0;
  Tree tree_;
  Typer typer_;
  std::vector<Line> lines_;
};

} // namespace

llvm::Expected<ScalarProgram> parseScalarProgram(llvm::StringRef text,
                                                 llvm::ArrayRef<llvm::StringRef> inputNames,
                                                 llvm::ArrayRef<DType> inputs,
                                                 llvm::ArrayRef<llvm::StringRef> outputs,
                                                 llvm::ArrayRef<NamedNumber> parameters) {
  return Parser(text, inputNames, inputs, parameters).program(outputs);
}

llvm::Expected<ScalarProgram> parseScalarExpr(llvm::StringRef text, llvm::ArrayRef<DType> inputs,
                                              DType result,
                                              llvm::ArrayRef<NamedNumber> parameters) {
  static constexpr llvm::StringRef kNames[] = {"a", "b", "c"};
  return Parser(text, kNames, inputs, parameters).expression(result);
}

} // namespace shardc
