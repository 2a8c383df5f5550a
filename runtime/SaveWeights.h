// SPDX-License-Identifier: Apache-2.0
// Parameters and gradients as .safetensors files, gathered from the ranks that have them.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"

namespace shardc {

class Communicator;

/// All ranks call these two; rank 0 writes the file, by parameter name, bucket after bucket. See writeFileAtomically for what
/// is left where that fails. No rank needs room for more than a piece of a bucket.
llvm::Error saveParameters(const plan::Plan &plan, Executor &executor, Communicator &communicator, llvm::StringRef path);
/// The gradients of trainable parameters, each element times `scale`. Call it between the last micro-step and the update.
llvm::Error saveGradients(const plan::Plan &plan, Executor &executor, Communicator &communicator, llvm::StringRef path,
                          double scale);

/// Bytes of the file of all parameters.
uint64_t parameterFileSize(const plan::Plan &plan);

} // namespace shardc
