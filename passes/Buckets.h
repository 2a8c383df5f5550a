// SPDX-License-Identifier: Apache-2.0
// How parameters lie in memory: buckets, each a run of parameters that are used together (design: section 6).
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// A parameter starts at a multiple of this many elements of its bucket.
constexpr int64_t kParameterAlignment = 64;

struct BucketMember {
  unsigned parameter; ///< index into Graph::parameters
  int64_t offset;     ///< elements from the bucket's start
};

/// Members in order of offset: first those that decay (rank >= 2), then the others; each in the model's order, so that
/// q, k and v of a layer are adjacent.
struct Bucket {
  std::string name; ///< the layer, or the modules that it holds
  DType dtype = DType::F32;
  bool trainable = true; ///< a frozen bucket has no gradient and no state
  int64_t elements = 0;  ///< padded to ranks x kParameterAlignment; rank r owns [r, r+1) * elements / ranks
  int64_t decayEnd = 0;  ///< [0, decayEnd) decays
  llvm::SmallVector<BucketMember> members = {};
};

using Buckets = std::vector<Bucket>;

/// An error where pass assign-buckets has not run.
llvm::Error requireBuckets(const Graph &graph);
/// The layout that pass assign-buckets decided on. Requires: it has run.
Buckets bucketLayout(const Graph &graph, unsigned ranks);

/// The f32 parameters beside 16-bit ones: few numbers of all layers.
constexpr llvm::StringLiteral kWideBucket = "fp32";

/// How the names of groups of parameters begin that are not a layer's, until nameGroups has named them.
constexpr llvm::StringLiteral kNameless = "?";
/// Parameter::layer of such groups becomes what a user knows: the module, or what modules of the group have in
/// common unless there are layers in it too ("bert.embeddings"), else "pooler.dense+classifier", and of more
/// than two "a+others". Where another group is called so: by the first parameter, "emb.pos.weight+others".
void nameGroups(Graph &graph);

/// Names of modules are parameters' names without the last component.
llvm::StringRef moduleOfName(llvm::StringRef parameterName);

/// "encoder.block.0" for "encoder.block.0.layer.1.wi.weight"; "" if no component is a number.
llvm::StringRef layerOfName(llvm::StringRef parameterName);

/// From insert-gradients to zero-partition gradients are outputs of this name + the parameter's name.
constexpr llvm::StringLiteral kGradientPrefix = "grad:";

} // namespace shardc
