// SPDX-License-Identifier: Apache-2.0
// Random models with fan-out, chains of views, broadcasts and shared parameters: the plan computes
// what the model says, and sharing memory changes no bit.
#include "ir/graph/Builder.h"
#include "ir/graph/Text.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "passes/Pipeline.h"
#include "tests/passes/PlanInterpreter.h"
#include "llvm/ADT/StringMap.h"
#include <gtest/gtest.h>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

class RandomModel {
public:
  explicit RandomModel(unsigned seed)
      : random_(seed), graph_(std::make_unique<Graph>()), b_(*graph_) {}

  std::unique_ptr<Graph> make() {
    graph_->attrs.set("batch", int64_t(4));
    source(kInput, "x", {4, 6});
    for (unsigned i = 0, n = 2 + pick(4); i < n; ++i)
      parameter("layers." + std::to_string(i % 3) + ".p" + std::to_string(i));
    for (unsigned i = 0, n = 4 + pick(20); i < n; ++i)
      if (Value *v = grow())
        values_.push_back(v);
    Value *loss = nullptr;
    for (Value *v : values_) {
      if (v->hasUses() && pick(4)) // some are read by the loss as well
        continue;
      SmallVector<int64_t> axes;
      for (int64_t d = 0; d < v->type().rank(); ++d)
        axes.push_back(d);
      Value *term = b_.sum(b_.mul(v, v), axes, /*keepDims=*/false);
      loss = loss ? b_.add(loss, term) : term;
    }
    graph_->addOutput("loss_sum", loss);
    graph_->addOutput("loss_count", b_.scalar(DType::F32, 3));
    graph_->addOutput("view", values_[pick(values_.size())]); // whatever it is
    return std::move(graph_);
  }

private:
  unsigned pick(size_t n) { return unsigned(random_() % n); }
  Value *any() { return values_[pick(values_.size())]; }

  Value *source(const OpDef &def, StringRef name, ArrayRef<int64_t> dims) {
    Value *v =
        graph_->create(def, {}, {{"name", name.str()}}, {Type(DType::F32, dims)}, nullptr, name)
            ->result();
    values_.push_back(v);
    return v;
  }

  void parameter(const std::string &name) {
    const Dims kShapes[] = {{4, 6}, {6}, {6, 4}, {1, 6}, {5, 6}, {24}, {2, 3, 4}};
    Dims dims = kShapes[pick(std::size(kShapes))];
    Value *v = source(kParam, name, dims);
    Parameter p;
    p.name = name;
    p.type = v->type();
    p.trainable = graph_->parameters.empty() || pick(6) != 0;
    p.value = v;
    graph_->parameters.push_back(std::move(p));
  }

  Value *grow() {
    Value *a = any();
    Dims dims = a->type().dims;
    int64_t rank = a->type().rank(), count = a->type().numElements();
    switch (pick(11)) {
    case 0:
    case 1: {
      Value *c = any();
      if (!broadcasts(dims, c->type().dims))
        return nullptr;
      return pick(2) ? b_.add(a, c) : b_.mul(a, c);
    }
    case 2:
      return b_.make(kTanh, {a});
    case 3: {
      SmallVector<int64_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), random_);
      return b_.transpose(a, perm);
    }
    case 4: {
      int64_t inner = 1 + pick(8);
      return count % inner ? nullptr : b_.reshape(a, {count / inner, inner});
    }
    case 5: {
      SmallVector<int64_t> starts, sizes, steps;
      for (int64_t d : dims) {
        int64_t step = pick(3) ? 1 : pick(2) ? 2 : -1, size = 1 + pick(d);
        size = step == 2 ? (size + 1) / 2 : size;
        starts.push_back(step < 0 ? d - 1 : 0);
        sizes.push_back(size);
        steps.push_back(step);
      }
      return b_.slice(a, starts, sizes, steps);
    }
    case 6: {
      if (count > 100)
        return nullptr;
      Dims wider{2};
      wider.append(dims.begin(), dims.end());
      return b_.expand(a, wider);
    }
    case 7:
      return rank == 0 ? nullptr : b_.sum(a, {int64_t(pick(rank))}, /*keepDims=*/pick(2));
    case 8: {
      Value *c = any();
      if (count % 6 || c->type().numElements() % 6)
        return nullptr;
      Value *left = b_.reshape(a, {count / 6, 6}),
            *right = b_.reshape(c, {c->type().numElements() / 6, 6});
      return b_.make(kTanh, {b_.matmul(left, b_.transpose(right, {1, 0}))});
    }
    case 9:
      return rank == 0 ? nullptr : b_.make(kSoftmax, {a}, {{"axis", int64_t(-1)}});
    default:
      return rank == 0 || count > 100 ? nullptr : b_.make(kConcat, {a, a}, {{"axis", int64_t(0)}});
    }
  }

  static bool broadcasts(const Dims &a, const Dims &b) {
    for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i)
      if (a[a.size() - i] != b[b.size() - i] && a[a.size() - i] != 1 && b[b.size() - i] != 1)
        return false;
    return true;
  }

  std::mt19937 random_;
  std::unique_ptr<Graph> graph_;
  Builder b_;
  std::vector<Value *> values_;
};

StringMap<Tensor> randomValues(const Graph &graph, unsigned seed) {
  std::mt19937 random(seed);
  StringMap<Tensor> values;
  for (const Op &op : graph.ops()) {
    if (!op.is(kInput) && !op.is(kParam))
      continue;
    std::vector<double> list(op.result()->type().numElements());
    for (double &v : list)
      v = std::uniform_real_distribution(-1.0, 1.0)(random);
    values[op.attrs.getString("name")] = fromDoubles(DType::F64, op.result()->type().dims, list);
  }
  return values;
}

/// The model op by op in float64.
Tensor evaluated(Graph &graph, const StringMap<Tensor> &values, StringRef output) {
  DenseMap<Value *, Tensor> known;
  for (Op &op : graph.ops()) {
    for (unsigned i = 0; i < op.numResults(); ++i)
      op.result(i)->setType(Type(DType::F64, op.result(i)->type().dims));
    if (op.is(kInput) || op.is(kParam)) {
      known[op.result()] = values.lookup(op.attrs.getString("name"));
      continue;
    }
    if (op.is(kConstant)) {
      const Tensor &t = op.attrs.getTensor("value");
      known[op.result()] = fromDoubles(DType::F64, t.dims(), toDoubles(t));
      continue;
    }
    SmallVector<const Tensor *> operands;
    for (Value *v : op.operands())
      operands.push_back(&known[v]);
    auto results = evaluateOp(op, operands);
    EXPECT_TRUE(bool(results)) << op.mnemonic().str();
    known[op.result()] = results->front();
  }
  return known[graph.output(output)];
}

void load(PlanInterpreter &run, const plan::Plan &plan, const StringMap<Tensor> &values) {
  for (const plan::Parameter &p : plan.parameters())
    run.writeParameter(p.name(), values.lookup(p.name()));
  for (const plan::Input &input : plan.inputs())
    run.writeInput(input.name(), values.lookup(input.name()));
  run.setScalar(kLearningRate, 1e-3);
  run.setScalar(kFirstUpdate, 1);
}

void tryModel(unsigned seed) {
  auto graph = RandomModel(seed).make();
  auto values = randomValues(*graph, seed);
  std::string text = toString(*graph);
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
  auto model = graph->clone();
  CompileOptions options;
  options.precision = Precision::Fp64;
  options.optimizer = Optimizer::Sgd;
  DebugOptions debug;
  debug.verifyEach = true;
  auto result = compile(std::move(graph), {}, options, debug);
  if (!result) {
    std::string error = toString(result.takeError());
    if (!StringRef(error).contains("no trainable parameter reaches the loss"))
      ADD_FAILURE() << error;
    return;
  }
  const plan::Plan &plan = *result->plan;
  ASSERT_EQ(toString(checkPlan(plan)), "");
  PlanInterpreter packed(plan, PlanInterpreter::Packed), disjoint(plan, PlanInterpreter::Disjoint);
  for (PlanInterpreter *run : {&packed, &disjoint}) {
    load(*run, plan, values);
    ASSERT_EQ(toString(run->run("train")), "");
  }
  double loss = evaluated(*model, values, "loss_sum").asDouble(0);
  EXPECT_NEAR(packed.readOutput("train", "loss_sum").asDouble(0), loss,
              1e-9 * (1 + std::abs(loss)));
  EXPECT_EQ(packed.readOutput("train", "loss_count").asDouble(0), 3);
  std::vector<double> view = toDoubles(packed.readOutput("train", "view"));
  std::vector<double> wanted = toDoubles(evaluated(*model, values, "view"));
  ASSERT_EQ(view.size(), wanted.size());
  for (size_t i = 0; i < view.size(); ++i)
    EXPECT_NEAR(view[i], wanted[i], 1e-9 * (1 + std::abs(wanted[i])));

  std::mt19937 random(seed);
  for (const plan::Parameter &p : plan.parameters()) {
    if (!p.trainable())
      continue;
    Tensor gradient = packed.readGradient(p.name()), original = values[p.name()];
    EXPECT_EQ(gradient, disjoint.readGradient(p.name())) << p.name();
    int64_t i = random() % gradient.numElements();
    double side[2];
    for (int k = 0; k < 2; ++k) {
      std::vector<double> moved = toDoubles(original);
      moved[i] += k ? 1e-5 : -1e-5;
      values[p.name()] = fromDoubles(DType::F64, original.dims(), moved);
      side[k] = evaluated(*model, values, "loss_sum").asDouble(0);
    }
    values[p.name()] = original;
    double slope = (side[1] - side[0]) / 2e-5;
    EXPECT_NEAR(gradient.asDouble(i), slope, 1e-6 * (1 + std::abs(slope) + std::abs(loss)))
        << p.name() << " " << i;
  }
  for (PlanInterpreter *run : {&packed, &disjoint})
    for (const char *program : {"update", "eval", "train", "update"})
      ASSERT_EQ(toString(run->run(program)), "");
  for (const plan::Parameter &p : plan.parameters())
    EXPECT_EQ(packed.readParameter(p.name()), disjoint.readParameter(p.name())) << p.name();
}

TEST(RandomModel, PlansComputeTheModel) {
  for (unsigned seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed)
    tryModel(seed);
}

TEST(RandomModel, PlansComputeTheModelLong) {
  for (unsigned seed = 1000; seed <= 3000 && !testing::Test::HasFailure(); ++seed)
    tryModel(seed);
}

} // namespace
} // namespace shardc
