// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Harness.h"
#include "ir/ops/Reference.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

namespace shardc::test {
namespace {

/// SplitMix64: the same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  double uniform() { return double(next() >> 11) * 0x1p-53; }

private:
  uint64_t state_;
};

std::vector<double> fill(const OperandSpec &spec, Random &random) {
  std::vector<double> values(numElements(spec.dims));
  switch (spec.fill) {
  case OperandSpec::Given:
    return spec.values;
  case OperandSpec::Absent:
    break;
  case OperandSpec::Normal:
    for (double &v : values)
      v = 4 * random.uniform() - 2;
    break;
  case OperandSpec::Positive:
    for (double &v : values)
      v = double(spec.low) + 0.5 + 2 * random.uniform();
    break;
  case OperandSpec::Integers:
    for (double &v : values)
      v = double(spec.low + int64_t(random.next() % uint64_t(spec.high - spec.low)));
    break;
  case OperandSpec::Distinct:
    // A grid of step 0.1 that misses the integers, shuffled, around 0.
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 0.1 * (double(i) - double(values.size() / 2)) + 0.037;
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[random.next() % i]);
    break;
  }
  return values;
}

/// loss += sum(result * weights)
Value *addLoss(Builder &build, Value *result, Value *loss, Random &random) {
  std::vector<double> weights(result->type().numElements());
  for (double &w : weights)
    w = random.uniform() + 0.5;
  Value *w = build.constant(fromDoubles(result->type().dtype, result->type().dims, weights));
  Ints axes;
  for (int64_t i = 0; i < result->type().rank(); ++i)
    axes.push_back(i);
  Value *sum = build.sum(build.mul(result, w), axes, /*keepDims=*/false);
  sum = build.cast(sum, wideType(sum->type().dtype));
  return loss ? build.add(loss, sum) : sum;
}

} // namespace

llvm::Expected<CaseGraph> buildCase(const OpCase &c, DType dtype) {
  CaseGraph g;
  g.graph = std::make_unique<Graph>();
  Random random(llvm::xxh3_64bits((std::string(c.def->mnemonic) + c.what)));
  Builder build(*g.graph);
  llvm::SmallVector<Value *> operands;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const OperandSpec &spec = c.operands[i];
    operands.push_back(nullptr);
    g.parameters.push_back(nullptr);
    if (spec.fill == OperandSpec::Absent)
      continue;
    DType own = spec.statistic ? wideType(dtype) : dtype;
    Tensor tensor = fromDoubles(spec.isFloat() && !spec.wide ? own : spec.dtype, spec.dims, fill(spec, random));
    if (spec.constant) {
      operands.back() = build.constant(tensor);
      continue;
    }
    std::string name = (spec.isFloat() ? "p" : "i") + std::to_string(i);
    Type type(tensor.dtype(), tensor.dims());
    Op *source = g.graph->create(spec.isFloat() ? kParam : kInput, {}, {{"name", name}}, {type},
                                 nullptr, name);
    operands.back() = source->result();
    if (spec.isFloat()) {
      Parameter parameter;
      parameter.name = name;
      parameter.type = type;
      parameter.value = source->result();
      g.graph->parameters.push_back(parameter);
      g.parameters.back() = source->result();
    }
    g.feeds[source->result()] = tensor;
  }
  if (c.def->collective == Collective::Done) // follows a start
    operands[0] = build.make(kAllReduceStart, operands, {{"ranks", int64_t(1)}});
  llvm::Expected<Op *> op = build.create(*c.def, operands, c.attrs);
  if (!op)
    return op.takeError();
  g.op = *op;
  Value *loss = nullptr;
  for (unsigned result : c.results)
    if (result < g.op->numResults() && g.op->result(result)->type().isFloat())
      loss = addLoss(build, g.op->result(result), loss, random);
  if (loss)
    g.graph->addOutput("loss_sum", loss);
  return g;
}

llvm::Expected<Values> interpret(const Graph &graph, const Values &feeds, RunOp run,
                                 const Value *last) {
  Values values = feeds;
  for (const Op &op : graph.ops()) {
    if (op.is(kInput) || op.is(kParam))
      continue;
    llvm::SmallVector<const Tensor *> operands;
    for (Value *operand : op.operands())
      operands.push_back(operand ? &values[operand] : nullptr);
    auto results = run(op, operands);
    if (!results)
      return results.takeError();
    for (unsigned i = 0; i < op.numResults(); ++i)
      values[op.result(i)] = (*results)[i];
    if (last && op.result() == last)
      break;
  }
  return values;
}

std::string compare(const Tensor &got, const Tensor &wanted, double tolerance) {
  if (got.dtype() != wanted.dtype() || got.dims() != wanted.dims())
    return "types differ: got " + toString(Type(got.dtype(), got.dims())) + ", wanted " +
           toString(Type(wanted.dtype(), wanted.dims()));
  for (int64_t i = 0; i < wanted.numElements(); ++i) {
    double a = got.asDouble(i), b = wanted.asDouble(i);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    if (!(std::fabs(a - b) <= tolerance * (1 + std::fabs(b))))
      return "element " + std::to_string(i) + " of " + toString(Type(got.dtype(), got.dims())) +
             ": got " + llvm::formatv("{0}", a).str() + ", wanted " + llvm::formatv("{0}", b).str();
  }
  return "";
}

OpCases allCases() {
  OpCases cases;
  pointwiseCases(cases);
  movementCases(cases);
  reduceCases(cases);
  normCases(cases);
  attentionCases(cases);
  relativeAttentionCases(cases);
  lossCases(cases);
  updateCases(cases);
  collectiveCases(cases);
  dropoutCases(cases);
  return cases;
}

OpCases casesOf(const OpDef &def) {
  OpCases cases = allCases();
  llvm::erase_if(cases, [&](const OpCase &c) { return c.def != &def; });
  return cases;
}

} // namespace shardc::test
