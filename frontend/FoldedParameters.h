// SPDX-License-Identifier: Apache-2.0
// Parameters that an exporter has computed constants from, so that training would miss them.
#pragma once

#include "llvm/Support/Error.h"

namespace shardc {
class OnnxModel;
class TorchSignature;
struct ParameterTable;

/// An error that names them, where such constants hold many numbers and
/// - dynamo's signature has a parameter that is not in `table`, while its module, or the one around it, reads the constant: T5's
///   position bias at fixed sizes, 1 + weight of Gemma's norms. A parameter that is missing otherwise is tied or not used;
/// - the file has no signature, and the constant has TorchScript's name for what it folded: the query bias of DeBERTa v1.
llvm::Error refuseFolded(const OnnxModel &model, const TorchSignature &signature,
                         const ParameterTable &table);

} // namespace shardc
