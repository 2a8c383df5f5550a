// SPDX-License-Identifier: Apache-2.0
// What lives between the programs of a step: buckets of parameters, gradients and optimizer state, and the loss. A graph reads
// a state by an `input` op with attrs {name: stateName, role, bucket} and leaves it as an output of that name; emission gives
// both the same memory.
#pragma once

#include "passes/Buckets.h"
#include "passes/Options.h"

namespace shardc {
class Builder;
}

namespace shardc::zero {

/// Master: what 16-bit parameters are rounded from, f32. LossScale: what dynamic loss scaling remembers.
enum class Role : uint8_t { Parameter, Gradient, State0, State1, Loss, Master, LossScale };
llvm::StringRef toString(Role role);

/// "state:gradient:3"; the loss and its scale have no bucket: "state:loss".
std::string stateName(Role role, int64_t bucket = -1);
bool isStateName(llvm::StringRef outputName);
/// Requires: isStateName. No bucket: -1.
std::pair<Role, int64_t> parseStateName(llvm::StringRef name);

/// Is it cut over the ranks at that stage? (Options::stage, not the flag.)
bool isSliced(Role role, unsigned stage);
/// T[elements], or T[elements / ranks] where it is sliced.
Type stateType(const Bucket &bucket, Role role, const CompileOptions &options);

/// 16-bit parameters that are trained have a master.
bool hasMaster(const Bucket &bucket);
/// At stage 3 the master alone is kept.
bool keepsParameters(const Bucket &bucket, const CompileOptions &options);
/// Attributes of a gather of the bucket's parameters: it rounds a master's slice.
Attrs gatherAttrs(const Bucket &bucket);

/// A new `input` op where `b` stands.
Value *readState(Builder &b, Role role, const Type &type, int64_t bucket = -1);
/// Of such an op; nullopt for others.
std::optional<Role> roleOf(const Op &op);

/// Kinds of a loss state: [sum, count].
constexpr int64_t kLossSum = 0, kLossCount = 1;

/// Of LossScale: the op's `state`, and its first element, scale / initial scale - 1.
Type lossScaleType();
constexpr int64_t kScaleExcess = 0;

/// The parts of zero-partition.
void gatherParameters(Graph &graph, const Buckets &buckets, const CompileOptions &options);
void reduceGradients(Graph &graph, const Buckets &buckets, const CompileOptions &options);
void sumLoss(Graph &graph, const CompileOptions &options);

/// start(operands) {ranks, ...}, then its done, where `b` stands. `name`: of the start's result.
Value *collective(Builder &b, const OpDef &start, llvm::ArrayRef<Value *> operands, const CompileOptions &options,
                  llvm::StringRef name, Attrs attrs = {});

} // namespace shardc::zero
