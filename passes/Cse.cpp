// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/OpDef.h"
#include "llvm/ADT/Hashing.h"
#include "passes/Passes.h"
#include <unordered_map>

namespace shardc {

static llvm::hash_code hashAttr(const Attr &attr) {
  if (auto *i = std::get_if<int64_t>(&attr))
    return llvm::hash_value(*i);
  if (auto *f = std::get_if<double>(&attr))
    return llvm::hash_value(std::bit_cast<uint64_t>(*f));
  if (auto *s = std::get_if<std::string>(&attr))
    return llvm::hash_value(*s);
  if (auto *ints = std::get_if<Ints>(&attr))
    return llvm::hash_combine_range(ints->begin(), ints->end());
  const Tensor &t = std::get<Tensor>(attr);
  auto bytes = static_cast<const char *>(t.bytes());
  return llvm::hash_combine(unsigned(t.dtype()), t.numElements(),
                            llvm::hash_combine_range(bytes, bytes + t.numBytes()));
}

static size_t hashOp(const Op &op) {
  llvm::hash_code hash = llvm::hash_combine(&op.def(), unsigned(op.phase == Phase::Update));
  for (const Value *v : op.operands())
    hash = llvm::hash_combine(hash, v);
  for (auto &[name, value] : op.attrs)
    hash = llvm::hash_combine(hash, name, hashAttr(value));
  return hash;
}

/// Equal results, bit for bit?
static bool same(const Op &a, const Op &b) {
  return &a.def() == &b.def() && a.operands() == b.operands() && a.attrs == b.attrs && a.result()->type() == b.result()->type();
}

llvm::Error cse(Graph &graph, const CompileOptions &) {
  // The order of the map is never seen: it only answers "is there an equal op above".
  std::unordered_multimap<size_t, Op *> known;
  for (auto it = graph.ops().begin(); it != graph.ops().end();) {
    Op &op = *it++;
    if (op.def().effect || op.numResults() == 0 || op.is(kDropout) || op.is(kInput) || op.is(kParam) ||
        (op.attrs.has("dropout") && op.attrs.getFloat("dropout") != 0))
      continue;
    size_t hash = hashOp(op);
    auto [first, last] = known.equal_range(hash);
    auto found = std::find_if(first, last, [&](auto &entry) { return same(*entry.second, op); });
    if (found == last) {
      known.emplace(hash, &op);
      continue;
    }
    for (unsigned i = 0; i < op.numResults(); ++i)
      graph.replaceAllUses(op.result(i), found->second->result(i));
    graph.erase(&op);
  }
  return llvm::Error::success();
}

} // namespace shardc
