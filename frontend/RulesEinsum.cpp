// SPDX-License-Identifier: Apache-2.0
// Einsum of any number of operands: pairs from left to right, each as transposes and one matrix
// product.
#include "frontend/NodeContext.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {
namespace {

/// A value whose dims are called by letters; dims of an ellipsis are digits '0'.. from the right.
struct Term {
  Value *value;
  std::string labels;
};

class Einsum {
public:
  explicit Einsum(NodeContext &n) : n_(n), b_(n.b) {}
  void run();

private:
  bool readLabels(llvm::StringRef text, int64_t rank, std::string &labels);
  /// Sums over the labels that `keep` has not, and over a diagonal where a label stands twice.
  Term reduced(Term term, llvm::StringRef keep);
  Term product(Term a, Term c, llvm::StringRef keep);
  /// `labels` in this order; those that the term lacks become dims of 1.
  Value *ordered(const Term &term, llvm::StringRef labels);
  int64_t size(char label) const { return sizes_.lookup(label); }
  Dims sizesOf(llvm::StringRef labels) const {
    Dims dims;
    for (char label : labels)
      dims.push_back(size(label));
    return dims;
  }

  NodeContext &n_;
  Emitter &b_;
  llvm::DenseMap<char, int64_t> sizes_;
};

bool Einsum::readLabels(llvm::StringRef text, int64_t rank, std::string &labels) {
  size_t dots = text.find("...");
  std::string before = text.take_front(dots).str(),
              after = dots == llvm::StringRef::npos ? "" : text.substr(dots + 3).str();
  for (char c : before + after)
    if (!llvm::isAlpha(c)) {
      b_.fail("equation: got '" + llvm::Twine(text) + "', wanted letters and '...'");
      return false;
    }
  int64_t hidden = rank < 0 ? -1 : rank - int64_t(before.size() + after.size());
  if (rank >= 0 && (hidden < 0 || hidden > 9 || (dots == llvm::StringRef::npos && hidden != 0))) {
    b_.fail("equation: got '" + llvm::Twine(text) + "' for " + llvm::Twine(rank) + " dims");
    return false;
  }
  labels = before;
  for (int64_t i = hidden; i-- > 0;)
    labels += char('0' + i);
  labels += after;
  return true;
}

Term Einsum::reduced(Term term, llvm::StringRef keep) {
  for (size_t i = 0; i < term.labels.size() && term.value; ++i) {
    size_t j = term.labels.find(term.labels[i], i + 1);
    if (j == std::string::npos)
      continue;
    // The diagonal: everything else made zero, then summed over the second dim.
    int64_t size = term.value->type().dims[i];
    if (term.value->type().dims[j] != size) {
      b_.fail("a diagonal of dims that differ");
      return term;
    }
    llvm::SmallVector<int64_t> numbers;
    for (int64_t k = 0; k < size; ++k)
      numbers.push_back(k);
    Ints down(term.labels.size(), 1), across(term.labels.size(), 1);
    down[i] = across[j] = size;
    Value *line = b_.ints(numbers);
    Value *same = b_.emit(kEqual, {b_.reshape(line, down), b_.reshape(line, across)});
    Value *zero = b_.scalar(term.value->type().dtype, 0);
    term.value = b_.reduce(kReduceSum, b_.where(same, term.value, zero), {int64_t(j)}, false);
    term.labels.erase(j, 1);
    --i;
  }
  Ints axes;
  std::string rest;
  for (size_t i = 0; i < term.labels.size(); ++i)
    if (keep.contains(term.labels[i]))
      rest += term.labels[i];
    else
      axes.push_back(i);
  return {b_.reduce(kReduceSum, term.value, axes, false), rest};
}

Value *Einsum::ordered(const Term &term, llvm::StringRef labels) {
  Ints perm, dims;
  for (char label : labels) {
    size_t at = term.labels.find(label);
    if (at != std::string::npos)
      perm.push_back(at);
    dims.push_back(at == std::string::npos || !term.value ? 1 : term.value->type().dims[at]);
  }
  return b_.reshape(b_.transpose(term.value, perm), dims);
}

Term Einsum::product(Term a, Term c, llvm::StringRef keep) {
  a = reduced(a, (keep + c.labels).str());
  c = reduced(c, (keep + a.labels).str());
  if (b_.failed())
    return {nullptr, ""};
  // A dim of 1 that stands for a larger one is not contracted by a matrix product.
  auto full = [&](const Term &t, char label) {
    return t.value->type().dims[t.labels.find(label)] == size(label);
  };
  std::string batch, inner, left, right;
  bool plain = true;
  for (char label : a.labels) {
    bool both = llvm::StringRef(c.labels).contains(label), kept = keep.contains(label);
    (both ? (kept ? batch : inner) : left) += label;
    if (both && !kept)
      plain &= full(a, label) && full(c, label);
  }
  for (char label : c.labels)
    if (!llvm::StringRef(a.labels).contains(label))
      right += label;
  if (inner.empty() || !plain) {
    std::string all = batch + left + right + inner;
    Term y{b_.emit(kMul, {ordered(a, all), ordered(c, all)}), all};
    return reduced(y, keep);
  }
  Dims wide = sizesOf(batch), groupA, groupC, dims;
  groupA = groupC = wide;
  groupA.append({numElements(sizesOf(left)), numElements(sizesOf(inner))});
  groupC.append({numElements(sizesOf(inner)), numElements(sizesOf(right))});
  Value *x = b_.reshape(b_.expand(ordered(a, batch + left + inner), sizesOf(batch + left + inner)),
                        groupA);
  Value *z = b_.reshape(
      b_.expand(ordered(c, batch + inner + right), sizesOf(batch + inner + right)), groupC);
  return {b_.reshape(b_.matmul(x, z), sizesOf(batch + left + right)), batch + left + right};
}

void Einsum::run() {
  std::string equation;
  for (char c : n_.stringAttr("equation", ""))
    if (c != ' ')
      equation += c;
  auto [left, right] = llvm::StringRef(equation).split("->");
  bool explicitOutput = llvm::StringRef(equation).contains("->");
  llvm::SmallVector<llvm::StringRef> texts;
  left.split(texts, ',');
  if (texts.size() != n_.numInputs())
    return b_.fail("equation: got " + llvm::Twine(texts.size()) + " terms for " +
                   llvm::Twine(n_.numInputs()) + " inputs");
  std::vector<Term> terms;
  std::string seen, hidden;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!n_.in(i))
      return b_.fail("inputs: got an absent one");
    Term term{n_.in(i), ""};
    if (!readLabels(texts[i], n_.type(i).rank(), term.labels))
      return;
    for (size_t k = 0; k < term.labels.size(); ++k) {
      char label = term.labels[k];
      int64_t dim = n_.type(i).dims[k];
      int64_t &known = sizes_.try_emplace(label, 1).first->second;
      if (known != dim && known != 1 && dim != 1)
        return b_.fail("equation: sizes of '" + llvm::Twine(label) + "' differ: got " +
                       llvm::Twine(known) + " and " + llvm::Twine(dim));
      known = known == 1 ? dim : known;
      if (llvm::isDigit(label) && !llvm::StringRef(hidden).contains(label))
        hidden += label;
      seen += label;
    }
    terms.push_back(term);
  }
  llvm::sort(hidden, std::greater<char>());
  std::string output;
  if (!explicitOutput) { // the ellipsis, then letters that occur once, in order
    std::string once;
    for (char label : seen)
      if (llvm::isAlpha(label) && llvm::StringRef(seen).count(label) == 1)
        once += label;
    llvm::sort(once);
    output = hidden + once;
  } else {
    size_t dots = right.find("...");
    if (!readLabels(right, -1, output))
      return;
    if (dots != llvm::StringRef::npos)
      output.insert(dots, hidden);
  }
  for (size_t i = 0; i < output.size(); ++i)
    if (!llvm::StringRef(seen).contains(output[i]) ||
        output.find(output[i], i + 1) != std::string::npos)
      return b_.fail("equation: the result's '" + llvm::Twine(output[i]) +
                     "' is unknown or there twice");

  Term result = terms[0];
  for (size_t i = 1; i < terms.size() && !b_.failed(); ++i) {
    std::string keep = output;
    for (size_t k = i + 1; k < terms.size(); ++k)
      keep += terms[k].labels;
    result = product(result, terms[i], keep);
  }
  result = reduced(result, output);
  if (!b_.failed())
    n_.set(0, b_.expand(ordered(result, output), sizesOf(output)));
}

void einsum(NodeContext &n) { Einsum(n).run(); }

constexpr NodeRule kRules[] = {{"Einsum", 1, kAnyNumber, einsum}};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kEinsumRules = kRules;

} // namespace shardc
