// SPDX-License-Identifier: Apache-2.0
// An index operand, and where bad indices are reported. Indices are i32 or i64 and may count from the end.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/FaultRecord.h"

namespace shardc::cuda {

struct IndexOperand {
  const void *data;
  ElementType type;
  FaultRecord *fault;
  int site;
};

} // namespace shardc::cuda
