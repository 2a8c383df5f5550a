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

void assignBuckets(Graph &graph) {
  llvm::DenseMap<const Value *, Parameter *> parameterOf;
  for (Parameter &p : graph.parameters) {
    p.bucket = -1;
    if (p.value)
      parameterOf[p.value] = &p;
  }
  std::map<std::pair<std::string, bool>, int64_t> indexOf;
  auto visit = [&](Parameter &p, llvm::StringRef userLayer) {
    if (p.bucket >= 0)
      return;
    llvm::StringRef own = layerOfName(p.name);
    p.layer = (!own.empty() ? own : !userLayer.empty() ? userLayer : "root").str();
    p.bucket = indexOf.try_emplace({p.layer, p.trainable}, indexOf.size()).first->second;
  };
  for (const Op &op : graph.ops())
    for (const Value *v : op.operands())
      if (Parameter *p = parameterOf.lookup(v))
        visit(*p, op.layer);
  for (Parameter &p : graph.parameters) // those that nobody uses
    visit(p, "");
}

Buckets bucketLayout(const Graph &graph, unsigned ranks) {
  Buckets buckets;
  auto append = [&](unsigned index, bool decays) {
    const Parameter &p = graph.parameters[index];
    if (decays != (p.type.rank() >= 2))
      return;
    buckets.resize(std::max<size_t>(buckets.size(), p.bucket + 1));
    Bucket &bucket = buckets[p.bucket];
    bucket.name = p.layer;
    bucket.trainable = p.trainable;
    bucket.dtype = p.type.dtype;
    bucket.members.push_back({index, bucket.elements});
    bucket.elements = llvm::alignTo(bucket.elements + p.type.numElements(), kParameterAlignment);
    if (decays)
      bucket.decayEnd = bucket.elements;
  };
  for (bool decays : {true, false})
    for (unsigned i = 0; i < graph.parameters.size(); ++i)
      append(i, decays);
  for (Bucket &bucket : buckets)
    bucket.elements = llvm::alignTo(bucket.elements, uint64_t(ranks) * kParameterAlignment);
  return buckets;
}

} // namespace shardc
