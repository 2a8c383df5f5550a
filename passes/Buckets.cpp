// SPDX-License-Identifier: Apache-2.0
#include "passes/Buckets.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <map>

namespace shardc {

llvm::StringRef layerOfName(llvm::StringRef name) {
  size_t start = 0;
  while (start < name.size()) {
    size_t end = std::min(name.find('.', start), name.size());
    llvm::StringRef component = name.slice(start, end);
    if (start > 0 && llvm::all_of(component, [](char c) { return c >= '0' && c <= '9'; }))
      return name.take_front(end);
    start = end + 1;
  }
  return "";
}

Buckets assignBuckets(const Graph &graph, unsigned ranks) {
  // Parameters in order of first use; unused ones at the end.
  llvm::DenseMap<const Value *, unsigned> parameterOf;
  for (unsigned i = 0; i < graph.parameters.size(); ++i)
    if (graph.parameters[i].value)
      parameterOf[graph.parameters[i].value] = i;
  std::vector<std::string> layer(graph.parameters.size());
  std::vector<unsigned> firstUse;
  std::vector<bool> seen(graph.parameters.size());
  auto visit = [&](unsigned p, llvm::StringRef userLayer) {
    if (seen[p])
      return;
    seen[p] = true;
    firstUse.push_back(p);
    llvm::StringRef own = layerOfName(graph.parameters[p].name);
    layer[p] = (!own.empty() ? own : !userLayer.empty() ? userLayer : "root").str();
  };
  for (const Op &op : graph.ops())
    for (const Value *v : op.operands())
      if (auto found = parameterOf.find(v); found != parameterOf.end())
        visit(found->second, op.layer);
  for (unsigned p = 0; p < graph.parameters.size(); ++p)
    visit(p, "");

  // Buckets in that order; inside a bucket the model's own order.
  Buckets buckets;
  std::vector<llvm::SmallVector<unsigned>> lists;
  std::map<std::pair<llvm::StringRef, bool>, unsigned> indexOf;
  for (unsigned p : firstUse) {
    const Parameter &parameter = graph.parameters[p];
    auto [found, isNew] = indexOf.try_emplace({layer[p], parameter.trainable}, buckets.size());
    if (isNew) {
      buckets.push_back({.name = layer[p], .dtype = parameter.type.dtype, .trainable = parameter.trainable});
      lists.emplace_back();
    }
    lists[found->second].push_back(p);
  }
  for (auto [bucket, list] : llvm::zip(buckets, lists)) {
    llvm::sort(list, [&](unsigned a, unsigned b) {
      bool flatA = graph.parameters[a].type.rank() < 2, flatB = graph.parameters[b].type.rank() < 2;
      return std::tie(flatA, a) < std::tie(flatB, b);
    });
    for (unsigned p : list) {
      const Type &type = graph.parameters[p].type;
      bucket.members.push_back({p, bucket.elements});
      bucket.elements = llvm::alignTo(bucket.elements + type.numElements(), kParameterAlignment);
      if (type.rank() >= 2)
        bucket.decayEnd = bucket.elements;
    }
    bucket.elements = llvm::alignTo(bucket.elements, uint64_t(ranks) * kParameterAlignment);
  }
  return buckets;
}

} // namespace shardc
