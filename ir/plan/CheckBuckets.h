// SPDX-License-Identifier: Apache-2.0
// Which buffers hold a bucket, whole or the rank's slice: those that the table names, and those
// that collectives fill from them or empty into them.
#pragma once

#include "ir/plan/Check.h"

namespace shardc::check {

/// What a buffer holds of a bucket.
struct Holding {
  enum Role : uint8_t { None, Parameters, Gradients, State, Master } role = None;
  bool slice = false; ///< slice r only
  uint32_t bucket = 0;
  DType dtype = DType::F32; ///< of its elements
};

class Holdings {
public:
  /// An error for a gather or reduction that belongs to no bucket, and for a buffer that is to hold
  /// two things. Requires: tables and collectives are sound.
  static llvm::Expected<Holdings> find(const plan::Plan &plan);
  const Holding &operator[](uint32_t buffer) const { return list_[buffer]; }

private:
  llvm::Error addTable(const plan::Plan &plan);
  llvm::Error addCommand(const plan::Plan &plan, unsigned program, unsigned command);
  llvm::Error add(const plan::Plan &plan, uint32_t buffer, Holding holding);

  std::vector<Holding> list_;
};

/// Element types of what the table names; Gradients: of the buffer that is kept.
DType elementType(const plan::Bucket &bucket, Holding::Role role);
/// Bytes of the bucket in that type, whole, or of a slice.
uint64_t bucketBytes(const plan::Plan &plan, const plan::Bucket &bucket, DType dtype, bool slice);
/// Is the operand all of a buffer that holds a bucket or a slice of it?
bool isAllOf(const plan::Plan &plan, const plan::Ref &ref);

} // namespace shardc::check
