// SPDX-License-Identifier: Apache-2.0
// 16-bit floats for kernels that know f32 only: operands are widened into scratch memory, the kernel runs on that, results are rounded
// to nearest even once. And of products with attribute tf32 = 1: their f32 operands are rounded into scratch memory.
#pragma once

#include "runtime/host/Kernel.h"

namespace shardc::host {

/// Binds the command's kernel, around it what widens and rounds if any operand or result is a 16-bit float that the kernel does not take, or
/// if operands are to be rounded to TF32.
/// The error says if there is no such kernel. Requires: what Bind requires; `scratch` has scratchBytes(...) bytes.
BoundKernel bindNarrow(const Binding &binding);

/// What a command with these operands and results needs; nullopt: sizes overflow, and binding will say so.
std::optional<int64_t> scratchBytes(const plan::Command &command);
int64_t scratchBytes(const plan::Command &command, llvm::ArrayRef<Array> in, llvm::ArrayRef<Array> out);

} // namespace shardc::host
