// SPDX-License-Identifier: Apache-2.0
#include "passes/Buckets.h"
#include "ir/base/Error.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include "passes/Passes.h"
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

namespace {

class Assignment {
public:
  Assignment(Graph &graph, uint64_t bucketBytes) : graph_(graph), bucketBytes_(bucketBytes) {
    for (Parameter &p : graph.parameters) {
      p.bucket = -1;
      narrow_ |= isHalf(p.type.dtype);
      if (p.value)
        parameterOf_[p.value] = &p;
      if (p.type.rank() >= 2)
        matrixModules_.insert(moduleOfName(p.name));
    }
  }

  void run() {
    for (const Op &op : graph_.ops())
      for (const Value *v : op.operands())
        if (Parameter *p = parameterOf_.lookup(v))
          visit(*p, op.layer);
    for (Parameter &p : graph_.parameters) // those that nobody uses
      visit(p, "");
    nameGroups(graph_);
  }

private:
  void visit(Parameter &p, llvm::StringRef userLayer) {
    if (p.bucket < 0 && narrow_ && p.type.dtype == DType::F32)
      join(p, kWideBucket.str());
    else if (p.bucket < 0)
      bucketBytes_ ? fill(p) : join(p, layerFor(p, layerOfName(userLayer)));
    if (llvm::StringRef layer = layerOfName(p.name); !layer.empty())
      lastLayer_ = layer.str();
  }

  /// Where parameters without a layer go. What only forward reads stays apart from what backward reads too, and big matrices apart
  /// from layers, so that neither is gathered for the sake of the other.
  std::string layerFor(const Parameter &p, llvm::StringRef userLayer) const {
    if (llvm::StringRef own = layerOfName(p.name); !own.empty())
      return own.str();
    if (!userLayer.empty())
      return userLayer.str();
    if (p.value && p.type.rank() >= 2 && llvm::any_of(p.value->uses(), [](const Use &use) { return use.op->is(kEmbedding); }))
      return (kNameless + "embeddings").str();
    if (lastLayer_.empty())
      return (kNameless + "root").str();
    return matrixModules_.contains(moduleOfName(p.name)) ? (kNameless + "after." + lastLayer_).str() : lastLayer_;
  }

  void join(Parameter &p, const std::string &layer) {
    p.layer = layer;
    auto [found, isNew] = indexOf_.try_emplace({layer, p.trainable}, count_);
    count_ += isNew;
    p.bucket = found->second;
  }

  /// By size: the bucket that is being filled takes it, if it has room.
  void fill(Parameter &p) {
    auto &[index, bytes] = open_[p.trainable];
    uint64_t own = p.type.numBytes();
    if (index < 0 || bytes + own > bucketBytes_) {
      index = count_++;
      bytes = 0;
    }
    bytes += own;
    p.bucket = index;
    p.layer = "bucket." + std::to_string(index);
  }

  Graph &graph_;
  uint64_t bucketBytes_;
  bool narrow_ = false; ///< there are 16-bit parameters
  llvm::DenseMap<const Value *, Parameter *> parameterOf_;
  llvm::StringSet<> matrixModules_; ///< those with a parameter of rank >= 2
  std::string lastLayer_;           ///< the numbered layer used last
  std::map<std::pair<std::string, bool>, int64_t> indexOf_;
  std::pair<int64_t, uint64_t> open_[2] = {{-1, 0}, {-1, 0}}; ///< bucket, bytes; of frozen and of trained parameters
  int64_t count_ = 0;
};

} // namespace

llvm::Error assignBuckets(Graph &graph, const CompileOptions &options) {
  Assignment(graph, options.bucketBytes).run();
  return llvm::Error::success();
}

llvm::Error requireBuckets(const Graph &graph) {
  for (const Parameter &p : graph.parameters)
    if (p.bucket < 0)
      return userError("parameter " + p.name + ": is in no bucket", "run pass assign-buckets before this one");
  return llvm::Error::success();
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
