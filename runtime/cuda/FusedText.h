// SPDX-License-Identifier: Apache-2.0
// Instructions of scalar programs as CUDA C++, by the functions of FusedPrelude.h.
#pragma once

#include "ir/base/ScalarExpr.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc::cuda {

/// As it lies in memory.
const char *storedType(DType dtype);
/// As it is computed: 16-bit floats are rounded floats.
const char *registerType(DType dtype);
/// A number of that type, bit by bit.
std::string literal(DType dtype, double value);

using NameOf = llvm::function_ref<std::string(int16_t reg)>;
/// What instruction i computes, its operands called by `name`; not rounded yet. Requires: no Input, no Keep, no sum or maximum.
std::string expressionOf(const ScalarProgram &program, size_t i, NameOf name);
/// A 16-bit value is rounded where it is defined.
std::string roundedTo(DType dtype, const std::string &expression);

/// Which instructions lead to a result.
std::vector<bool> usedInstructions(const ScalarProgram &program);
/// Which of these are read by others.
std::vector<bool> readInstructions(const ScalarProgram &program);
/// "" or which instruction has no meaning for its types.
std::string checkFused(const ScalarProgram &program);

} // namespace shardc::cuda
