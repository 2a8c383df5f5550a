// SPDX-License-Identifier: Apache-2.0
// Damage to a plan, of many kinds, each at every place of the plan.
#pragma once

#include "ir/plan/Plan.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace shardc {

/// `kind`: a name; `place`: where, for people; `apply` damages a copy of the plan, in which it may also leave things as they are.
using VisitDamage = llvm::function_ref<void(llvm::StringRef kind, llvm::function_ref<std::string()> place,
                                            llvm::function_ref<void(plan::Plan &)> apply)>;

/// What only the meaning of a command says, and therefore no check of a plan can know: which part of an array a strided operand
/// reads, which of two parameters of one shape.
constexpr llvm::StringLiteral kOtherPart = "another part of an array", kOtherParameter = "another parameter of that shape";

/// Events, order and streams.
void eachOrderDamage(const plan::Plan &plan, VisitDamage visit);
/// Buffers: addresses and lifetimes.
void eachBufferDamage(const plan::Plan &plan, VisitDamage visit);
/// Operands: places, sizes, slices, what they mean.
void eachOperandDamage(const plan::Plan &plan, VisitDamage visit);
/// Collectives and updates: what they work on, and whether they are there.
void eachCollectiveDamage(const plan::Plan &plan, VisitDamage visit);
/// Header, buckets, parameters, programs, outputs.
void eachTableDamage(const plan::Plan &plan, VisitDamage visit);

/// All of the above.
inline void eachDamage(const plan::Plan &plan, VisitDamage visit) {
  for (auto *part : {eachOrderDamage, eachBufferDamage, eachOperandDamage, eachCollectiveDamage, eachTableDamage})
    part(plan, visit);
}

} // namespace shardc
