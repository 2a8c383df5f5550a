// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/UpdateShape.h"
#include "ir/plan/Scalars.h"
#include "llvm/Support/MathExtras.h"

namespace shardc::host {

bool updateShape(Checks &c, const Binding &b, unsigned states, bool required, UpdateShape &shape) {
  if (!c.that(b.in.size() == 4 + states, "number of operands: wanted " + std::to_string(4 + states)))
    return false;
  unsigned present = 0;
  for (unsigned i = 0; i < b.in.size(); ++i) {
    bool state = i >= 2 && i < 2 + states;
    if (!c.that(b.in[i] || (state && !required), "operand " + std::to_string(i) + " is absent"))
      return false;
    present += state && b.in[i];
  }
  const Array &param = b.in[0];
  int64_t ranks, elements;
  shape.rounds = c.has("rounded");
  const size_t rounded = shape.rounds ? 1 : 0;
  if (!(c.that(b.out.size() >= 1 + present + rounded && b.out.size() <= 1 + states + rounded,
               "number of results: wanted param, the states and what is rounded") &&
        (!rounded || (c.dims(b.out.back(), param.dims) && c.contiguous(b.out.back()))) && c.real(param) &&
        c.intAttr("decay_end", shape.decayEnd) && c.intAttr("ranks", ranks, 1) &&
        c.that(ranks >= 1 && !llvm::MulOverflow(param.numElements(), ranks, elements),
               "attribute ranks: wanted at least 1") &&
        c.that(shape.decayEnd >= 0 && shape.decayEnd <= elements,
               "attribute decay_end: wanted an element of the parameters") &&
        c.dtype(b.in[2 + states], DType::F64) && c.dims(b.in[2 + states], {}) &&
        c.dtype(b.in[3 + states], DType::F64) && c.dims(b.in[3 + states], {kNumScalars}) &&
        c.contiguous(b.in[3 + states])))
    return false;
  for (unsigned i = 0; i < 2 + states; ++i)
    if (b.in[i] && !(c.dims(b.in[i], param.dims) && (i == 1 || c.dtype(b.in[i], param.dtype)) && c.contiguous(b.in[i])))
      return false;
  shape.sliced = ranks > 1;
  // Results are the memory of what they update.
  llvm::SmallVector<std::pair<unsigned, unsigned>> same = {{0, 0}};
  for (unsigned i = 0; i < states; ++i)
    same.push_back({1 + i, 2 + i});
  for (auto [o, i] : same)
    if (o + rounded < b.out.size() &&
        !c.that((!b.out[o] && !b.in[i]) || sameArray(b.out[o], b.in[i]),
                "result " + std::to_string(o) + ": wanted the memory of operand " + std::to_string(i)))
      return false;
  return c.apart(same);
}

} // namespace shardc::host
