// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/FusedLaunch.h"
#include "ir/base/ScalarRows.h"
#include "runtime/cuda/FusedText.h"
#include "runtime/cuda/Walk.h"
#include "runtime/host/Strided.h"

namespace shardc::cuda {
namespace {

constexpr unsigned kMaxWidth = 8;
/// Places below it fit into 32 bits, sums and differences of them too.
constexpr int64_t kNarrow = int64_t(1) << 30;

/// All operands and results on their common dims.
struct Common {
  Dims dims;
  llvm::SmallVector<Dims, 8> strides; ///< inputs, then outputs
  Dims plain;                         ///< row-major strides

  bool constant(size_t k) const {
    return llvm::all_of(strides[k], [](int64_t s) { return s == 0; });
  }
  bool flat(size_t k) const { return strides[k] == plain; }
};

class Layouter {
public:
  Layouter(const host::Binding &b, const ScalarProgram &program, FusedLaunch &to)
      : b_(b), program_(program), to_(to) {
    for (const host::Array &a : b.in)
      arrays_.push_back(&a);
    for (const host::Array &a : b.out)
      arrays_.push_back(&a);
    used_.assign(arrays_.size(), false);
    std::vector<bool> used = usedInstructions(program);
    for (size_t i = 0; i < program.code.size(); ++i)
      if (used[i] && program.code[i].code == ScalarCode::Input)
        used_[program.code[i].input] = true;
    std::fill(used_.begin() + b.in.size(), used_.end(), true);
  }

  bool run(host::Checks &c) {
    common_.dims = b_.out[0].dims;
    const int64_t elements = numElements(common_.dims);
    for (size_t k = 0; k < arrays_.size(); ++k) {
      Dims strides = arrays_[k]->strides;
      if (k < b_.in.size() && !c.that(host::broadcastStrides(*arrays_[k], common_.dims, strides),
                                      "operand of shape " + formatDims(arrays_[k]->dims) +
                                          " does not broadcast to " + formatDims(common_.dims)))
        return false;
      if (!used_[k])
        strides.assign(common_.dims.size(), 0);
      common_.strides.push_back(strides);
    }
    if (elements == 0)
      return true;
    host::collapse(common_.dims, common_.strides);
    common_.plain = rowMajorStrides(common_.dims);
    to_.layout.width = chooseWidth();
    to_.units = elements / to_.layout.width;
    to_.layout.wide = isWide(elements);
    for (size_t k = 0; k < arrays_.size(); ++k) {
      FusedOperand operand{arrays_[k]->dtype, accessOf(k)};
      if (operand.walked())
        to_.layout.rank = common_.dims.size();
      if (k < b_.in.size())
        to_.layout.inputs.push_back(operand);
      else
        to_.layout.outputs.push_back(operand);
    }
    writeWords(elements);
    return true;
  }

private:
  size_t last() const { return common_.dims.size() - 1; }

  FusedAccess accessOf(size_t k) const {
    if (!used_[k])
      return FusedAccess::Unused;
    if (common_.flat(k))
      return FusedAccess::Flat;
    if (common_.constant(k))
      return FusedAccess::Constant;
    return common_.strides[k][last()] == 0 ? FusedAccess::WalkedSame : FusedAccess::Walked;
  }

  /// As many neighbours as the narrowest operand has in 16 bytes, if all operands have so many side by side.
  unsigned chooseWidth() const {
    unsigned width = 1;
    for (size_t k = 0; k < arrays_.size(); ++k)
      if (used_[k] && common_.strides[k][last()] == 1)
        width = std::max<unsigned>(width, 16 / byteSize(arrays_[k]->dtype));
    for (width = std::min(width, kMaxWidth); width > 1 && !fits(width);)
      width /= 2;
    return width;
  }
  bool fits(int64_t width) const {
    if (common_.dims[last()] % width)
      return false;
    for (size_t k = 0; k < arrays_.size(); ++k) {
      const Dims &strides = common_.strides[k];
      if (!used_[k] || strides[last()] == 0)
        continue;
      const int64_t bytes = std::min<int64_t>(16, width * byteSize(arrays_[k]->dtype));
      if (strides[last()] != 1 || reinterpret_cast<uintptr_t>(arrays_[k]->data) % uint64_t(bytes))
        return false;
      for (size_t d = 0; d < last(); ++d)
        if (strides[d] * byteSize(arrays_[k]->dtype) % bytes)
          return false;
    }
    return true;
  }

  bool isWide(int64_t elements) const {
    if (elements >= kNarrow)
      return true;
    for (size_t k = 0; k < arrays_.size(); ++k) {
      int64_t reach = 0;
      for (size_t d = 0; d < common_.dims.size(); ++d)
        reach += (common_.dims[d] - 1) * std::abs(common_.strides[k][d]);
      if (reach >= kNarrow)
        return true;
    }
    return false;
  }

  void writeWords(int64_t elements) {
    std::vector<uint64_t> &words = to_.words;
    for (const host::Array *a : arrays_)
      words.push_back(reinterpret_cast<uintptr_t>(a->data));
    words.push_back(to_.units);
    words.push_back(elements);
    words.push_back(reinterpret_cast<uintptr_t>(b_.scalars));
    for (const ScalarInstr &instr : program_.code)
      if (instr.code == ScalarCode::Keep)
        words.push_back(instr.input);
    const unsigned rank = to_.layout.rank, width = to_.layout.width;
    for (unsigned d = 0; d + 1 < rank; ++d) {
      const int64_t size = common_.dims[last() - d] / (d == 0 ? width : 1);
      const Divider divider(size, elements);
      words.push_back(size);
      words.push_back(divider.magic | uint64_t(divider.shift) << 32);
    }
    for (size_t k = 0; k < arrays_.size(); ++k) {
      const FusedAccess access = accessOf(k);
      if (access != FusedAccess::Walked && access != FusedAccess::WalkedSame)
        continue;
      for (unsigned d = 0; d < rank; ++d)
        words.push_back(common_.strides[k][last() - d] * (d == 0 ? width : 1));
    }
  }

  const host::Binding &b_;
  const ScalarProgram &program_;
  FusedLaunch &to_;
  llvm::SmallVector<const host::Array *, 8> arrays_; ///< inputs, then outputs
  std::vector<bool> used_;
  Common common_;
};

} // namespace

bool readFused(const host::Binding &b, host::Checks &c, ScalarProgram &program) {
  std::string body, outputs;
  if (!(c.that(!b.out.empty(), "no results") && c.stringAttr("body", body) &&
        c.stringAttr("outputs", outputs)))
    return false;
  llvm::SmallVector<llvm::StringRef> outputNames, inputNames;
  llvm::StringRef(outputs).split(outputNames, ',');
  for (llvm::StringRef &name : outputNames)
    name = name.trim();
  if (!c.that(outputNames.size() == b.out.size(), "number of results: wanted those of 'outputs'"))
    return false;
  std::vector<std::string> names;
  llvm::SmallVector<DType> types;
  std::vector<std::pair<unsigned, unsigned>> inPlace;
  for (size_t i = 0; i < b.in.size(); ++i)
    names.push_back(("x" + llvm::Twine(i)).str());
  for (size_t i = 0; i < b.in.size(); ++i) {
    if (!c.that(bool(b.in[i]), "operand " + std::to_string(i) + " is absent"))
      return false;
    inputNames.push_back(names[i]);
    types.push_back(b.in[i].dtype);
    for (size_t o = 0; o < b.out.size(); ++o)
      inPlace.push_back({o, i});
  }
  for (const host::Array &y : b.out)
    if (!(c.that(bool(y), "absent result") && c.dims(y, b.out[0].dims)))
      return false;
  if (!c.apart(inPlace))
    return false;
  auto parsed = parseScalarProgram(body, inputNames, types, outputNames);
  if (!parsed)
    return c.that(false, "body: " + llvm::toString(parsed.takeError()));
  program = std::move(*parsed);
  for (size_t o = 0; o < b.out.size(); ++o)
    if (!c.dtype(b.out[o], program.code[program.outputs[o]].dtype))
      return false;
  std::string wrong = joinsElements(program) ? "got a sum over rows, wanted pointwise functions" : checkFused(program);
  return c.that(wrong.empty(), "body: " + wrong);
}

bool layOutFused(const host::Binding &b, host::Checks &c, const ScalarProgram &program, FusedLaunch &to) {
  return Layouter(b, program, to).run(c);
}

} // namespace shardc::cuda
