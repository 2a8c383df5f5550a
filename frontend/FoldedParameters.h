// SPDX-License-Identifier: Apache-2.0
// Parameters that an exporter has computed constants from, so that training would miss them.
#pragma once

#include "llvm/Support/Error.h"

namespace shardc {
class OnnxModel;
class TorchSignature;
struct ParameterTable;

/// An error that names them, if the file says which parameters PyTorch had (dynamo) and one of them is
/// not in `table`, while its module, or the one around it, reads a constant that somebody computed: T5's position
/// bias at fixed sizes, 1 + weight of Gemma's norms. A parameter that is missing otherwise is tied or not used.
llvm::Error refuseFolded(const OnnxModel &model, const TorchSignature &signature,
                         const ParameterTable &table);

} // namespace shardc
