// SPDX-License-Identifier: Apache-2.0
#include "frontend/Finish.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include "ir/graph/DeadOps.h"
#include "ir/graph/Fold.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

namespace shardc {

void eraseUnused(Graph &graph) {
  llvm::DenseSet<const Value *> gone = eraseDeadOps(graph);
  llvm::erase_if(graph.parameters, [&](const Parameter &p) { return gone.contains(p.value); });
}

llvm::Error chooseTrainables(Graph &graph, llvm::ArrayRef<std::string> freeze) {
  llvm::DenseSet<const Value *> onPath;
  if (Value *loss = graph.output("loss_sum"))
    onPath.insert(loss);
  for (auto it = graph.ops().rbegin(); it != graph.ops().rend(); ++it) {
    if (!it->def().gradient)
      continue;
    bool reaches = false;
    for (unsigned i = 0; i < it->numResults(); ++i)
      reaches |= onPath.contains(it->result(i));
    if (!reaches)
      continue;
    for (Value *operand : it->operands())
      if (operand && operand->type().isFloat())
        onPath.insert(operand);
  }
  std::vector<std::pair<llvm::GlobPattern, bool>> globs;
  for (const std::string &text : freeze) {
    auto glob = llvm::GlobPattern::create(text);
    if (!glob)
      return userError("--freeze: got " + quoted(text) + ": " + llvm::toString(glob.takeError()));
    globs.emplace_back(std::move(*glob), false);
  }
  bool any = false;
  for (Parameter &p : graph.parameters) {
    p.trainable = p.type.isFloat() && onPath.contains(p.value);
    for (auto &[glob, matched] : globs) {
      bool here = glob.match(p.name);
      for (const std::string &tie : p.ties)
        here |= glob.match(tie);
      matched |= here;
      p.trainable &= !here;
    }
    any |= p.trainable;
  }
  for (size_t i = 0; i < globs.size(); ++i)
    if (!globs[i].second)
      return userError("--freeze: got " + quoted(freeze[i]) +
                       ", wanted a glob that matches a parameter's name");
  if (!any && graph.output("loss_sum"))
    return userError("nothing to train: got " + llvm::Twine(graph.parameters.size()) +
                     " parameters, of which none is free and reaches the loss");
  return llvm::Error::success();
}

std::string layerOfName(llvm::StringRef name) {
  for (size_t start = 0; start < name.size();) {
    size_t dot = name.find('.', start);
    llvm::StringRef part = name.slice(start, dot);
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      return name.take_front(start + part.size()).str();
    if (dot == llvm::StringRef::npos)
      break;
    start = dot + 1;
  }
  return "";
}

namespace {

/// Layers that scopes of nodes may name: "/m/encoder/block.0/layer.1/MatMul" is in
/// "encoder.block.0".
class Scopes {
public:
  void add(llvm::StringRef layer) { layers_.insert(layer); }
  /// Null if the place names no layer.
  std::optional<llvm::StringRef> find(llvm::StringRef place) const {
    if (!place.contains('/'))
      return std::nullopt;
    std::string dotted = place.str();
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    std::string layer = layerOfName(llvm::StringRef(dotted).ltrim('.'));
    for (llvm::StringRef rest = layer; !rest.empty(); rest = rest.split('.').second)
      if (auto it = layers_.find(rest); it != layers_.end())
        return it->first();
    return std::nullopt;
  }

private:
  llvm::StringSet<> layers_;
};

} // namespace

void assignLayers(Graph &graph) {
  Scopes scopes;
  for (Parameter &p : graph.parameters) {
    p.value->op()->layer = layerOfName(p.name);
    scopes.add(p.value->op()->layer);
  }
  llvm::DenseMap<const Op *, unsigned> order; // of ops that have a layer, perhaps ""
  llvm::DenseSet<const Op *> ofParameters;    // parameters and what is made of nothing else
  unsigned next = 0;
  for (Op &op : graph.ops()) {
    ++next;
    if (op.is(kParam))
      ofParameters.insert(&op);
    const Op *parameter = nullptr, *latest = nullptr;
    bool onlyParameters = op.numOperands() > 0;
    for (Value *operand : op.operands()) {
      if (!operand)
        continue;
      const Op *maker = operand->op();
      bool made = ofParameters.contains(maker);
      onlyParameters &= made;
      if (made && (!parameter || parameter->layer.empty()))
        parameter = maker;
      if (auto it = order.find(maker); it != order.end() && (!latest || it->second > order[latest]))
        latest = maker;
    }
    if (onlyParameters)
      ofParameters.insert(&op);
    if (op.is(kParam)) {
    } else if (parameter) {
      op.layer = parameter->layer;
    } else if (auto scope = scopes.find(op.place)) {
      op.layer = scope->str();
    } else if (latest) {
      op.layer = latest->layer;
    } else {
      continue;
    }
    if (!ofParameters.contains(&op))
      order[&op] = next;
  }
}

namespace {

struct Limit {
  int64_t low, high;
  std::optional<int64_t> ignore;
};

/// Narrows the limits of the inputs that `value` copies: index `limit` holds for each of its
/// elements.
void narrow(Value *value, Limit limit, int depth = 0) {
  Op *op = value->op();
  if (op->is(kInput)) {
    if (isFloat(value->type().dtype))
      return;
    op->attrs.set("low", std::max(limit.low, op->attrs.getInt("low", limit.low)));
    op->attrs.set("high", std::min(limit.high, op->attrs.getInt("high", limit.high)));
    if (limit.ignore)
      op->attrs.set("ignore", *limit.ignore);
    return;
  }
  if (depth > 16)
    return;
  if (op->def().view || op->is(kCast) || op->is(kCopy))
    return narrow(op->operand(0), limit, depth + 1);
  if (op->is(kConcat))
    for (Value *part : op->operands())
      narrow(part, limit, depth + 1);
  // Labels where the condition (label >= 0) holds, else what is ignored: anything below 0 may stand
  // there.
  const Tensor *otherwise = op->is(kWhere) ? constantOf(op->operand(2)) : nullptr;
  if (otherwise && limit.ignore && otherwise->numElements() == 1 &&
      otherwise->asInt(0) == *limit.ignore)
    if (op->operand(0)->op()->is(kGreaterEqual))
      narrow(op->operand(1), {std::numeric_limits<int64_t>::min() / 2, limit.high, limit.ignore},
             depth + 1);
}

} // namespace

void boundInputs(Graph &graph) {
  for (Op &op : graph.ops()) {
    if (op.is(kGather) || op.is(kEmbedding) || op.is(kGatherElements)) {
      const Type &data = op.operand(0)->type();
      int64_t axis = op.is(kEmbedding) ? 0 : op.attrs.getInt("axis");
      narrow(op.operand(1), {0, data.dim(axis), std::nullopt});
    } else if (op.is(kCrossEntropy)) {
      narrow(op.operand(1), {0, op.operand(0)->type().dims[1], op.attrs.getInt("ignore_index")});
    }
  }
}

} // namespace shardc
