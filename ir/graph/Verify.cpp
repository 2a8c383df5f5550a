// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Verify.h"
#include "ir/base/Error.h"
#include "ir/graph/Text.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

static llvm::Error broken(const Op &op, const llvm::Twine &what) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printOp(op, os);
  return userError("verifier: " + what + "\n  in: " + text, "this is a bug in shardc: please report it with --reproducer");
}

static llvm::Error verifyOp(const Op &op, const llvm::DenseSet<const Value *> &defined) {
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    const Value *v = op.operand(i);
    if (!v)
      continue;
    if (!defined.contains(v))
      return broken(op, "operand " + llvm::Twine(i) + " is not defined before its use");
    if (llvm::count_if(v->uses(), [&](const Use &u) { return u.op == &op && u.index == i; }) != 1)
      return broken(op, "operand " + llvm::Twine(i) + " does not list this use once");
  }
  if (op.is(kInput) || op.is(kParam))
    return llvm::Error::success();
  llvm::Expected<Types> types = op.def().infer(op);
  if (!types)
    return broken(op, llvm::toString(types.takeError()));
  if (types->size() != op.numResults())
    return broken(op, "number of results");
  for (unsigned i = 0; i < types->size(); ++i)
    if (!((*types)[i] == op.result(i)->type()))
      return broken(op, "result " + llvm::Twine(i) + " has type " + toString(op.result(i)->type()) + ", inferred " +
                            toString((*types)[i]));
  return llvm::Error::success();
}

/// What a level forbids.
static llvm::Error verifyLevel(const Graph &graph, const Op &op) {
  if (graph.level == Level::Imported && op.phase != Phase::Forward)
    return broken(op, "only forward ops exist at level imported");
  if (graph.level < Level::Sharded && op.phase == Phase::Update)
    return broken(op, "update ops exist from level sharded on");
  if (graph.level < Level::Scheduled && op.is(kFused))
    return broken(op, "fused ops exist from level scheduled on");
  if (graph.level == Level::Scheduled && op.def().scalar)
    return broken(op, "a pointwise op outside a fused group at level scheduled");
  return llvm::Error::success();
}

llvm::Error verify(const Graph &graph) {
  llvm::DenseSet<const Value *> defined;
  Phase phase = Phase::Forward;
  for (const Op &op : graph.ops()) {
    if (op.phase < phase && !op.is(kConstant))
      return broken(op, "phases are not in order");
    phase = std::max(phase, op.phase);
    if (llvm::Error error = verifyOp(op, defined))
      return error;
    if (llvm::Error error = verifyLevel(graph, op))
      return error;
    for (unsigned i = 0; i < op.numResults(); ++i) {
      defined.insert(op.result(i));
      if (graph.findValue(op.result(i)->name()) != op.result(i))
        return broken(op, "name %" + op.result(i)->name() + " is not unique");
    }
  }
  for (auto &[name, value] : graph.outputs())
    if (!defined.contains(value))
      return userError("verifier: output '" + name + "' is not defined");
  for (const Parameter &p : graph.parameters)
    if (p.value && !defined.contains(p.value))
      return userError("verifier: parameter '" + p.name + "' has a value that is not in the graph");
  return llvm::Error::success();
}

} // namespace shardc
