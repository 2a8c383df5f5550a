// SPDX-License-Identifier: Apache-2.0
#include "passes/zero/State.h"
#include "ir/graph/Builder.h"
#include "ir/ops/StepScalars.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::zero {

static constexpr llvm::StringLiteral kRoles[] = {"parameter", "gradient", "state0", "state1", "loss", "master", "loss_scale"};
static constexpr llvm::StringLiteral kPrefix = "state:", kRoleAttr = "role", kBucketAttr = "bucket";

llvm::StringRef toString(Role role) { return kRoles[unsigned(role)]; }

std::string stateName(Role role, int64_t bucket) {
  std::string name = (kPrefix + toString(role)).str();
  return bucket < 0 ? name : name + ":" + std::to_string(bucket);
}

bool isStateName(llvm::StringRef outputName) { return outputName.starts_with(kPrefix); }

static std::optional<Role> findRole(llvm::StringRef name) {
  auto *found = llvm::find(kRoles, name);
  return found == std::end(kRoles) ? std::nullopt : std::optional(Role(found - kRoles));
}

std::pair<Role, int64_t> parseStateName(llvm::StringRef name) {
  auto [role, bucket] = name.drop_front(kPrefix.size()).split(':');
  int64_t index = -1;
  bool bad = !bucket.empty() && bucket.getAsInteger(10, index);
  assert(!bad && findRole(role));
  (void)bad;
  return {*findRole(role), index};
}

bool isSliced(Role role, unsigned stage) {
  switch (role) {
  case Role::Parameter: return stage >= 3;
  case Role::Gradient: return stage >= 2;
  case Role::State0:
  case Role::State1:
  case Role::Master: return stage >= 1;
  case Role::Loss:
  case Role::LossScale: return false;
  }
  llvm_unreachable("role");
}

static DType elementType(const Bucket &bucket, Role role, const CompileOptions &options) {
  switch (role) {
  case Role::Parameter: return bucket.dtype;
  case Role::Gradient: return options.keptGradientType(bucket.dtype);
  case Role::State0:
  case Role::State1:
  case Role::Loss:
  case Role::Master: return wideType(bucket.dtype);
  case Role::LossScale: return DType::F64;
  }
  llvm_unreachable("role");
}

Type lossScaleType() { return Type(DType::F64, {step::kScaleStateCount}); }

bool hasMaster(const Bucket &bucket) { return bucket.trainable && isHalf(bucket.dtype); }
bool keepsParameters(const Bucket &bucket, const CompileOptions &options) { return options.stage() < 3 || !hasMaster(bucket); }

Attrs gatherAttrs(const Bucket &bucket) {
  return hasMaster(bucket) ? Attrs{{"to", toString(bucket.dtype).str()}} : Attrs();
}

Type stateType(const Bucket &bucket, Role role, const CompileOptions &options) {
  return Type(elementType(bucket, role, options), {bucket.elements / (isSliced(role, options.stage()) ? int64_t(options.ranks) : 1)});
}

Value *readState(Builder &b, Role role, const Type &type, int64_t bucket) {
  std::string name = stateName(role, bucket);
  Attrs attrs{{"name", name}, {kRoleAttr, toString(role).str()}};
  if (bucket >= 0)
    attrs.set(kBucketAttr, bucket);
  Op *op = b.graph().create(kInput, {}, std::move(attrs), {type}, b.before(), name);
  op->phase = b.phase;
  op->layer = b.layer;
  op->place = b.place;
  return op->result();
}

std::optional<Role> roleOf(const Op &op) {
  if (!op.is(kInput) || !op.attrs.has(kRoleAttr))
    return std::nullopt;
  return findRole(op.attrs.getString(kRoleAttr));
}

Value *collective(Builder &b, const OpDef &start, llvm::ArrayRef<Value *> operands, const CompileOptions &options,
                  llvm::StringRef name, Attrs attrs) {
  attrs.set("ranks", int64_t(options.ranks));
  return b.make(kCollectiveDone, {b.make(start, operands, std::move(attrs), name)});
}

} // namespace shardc::zero
