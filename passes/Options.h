// SPDX-License-Identifier: Apache-2.0
// What a user can decide about a compilation; the flags of `shardc` fill it.
#pragma once

#include "ir/base/DType.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace shardc {

enum class Optimizer : uint8_t { AdamW, Adam, Sgd };
llvm::StringRef toString(Optimizer optimizer);

/// Fp64 is for gradient checks and for comparing with float64 references. Tf32: products round their operands. Bf16, Fp16: 16-bit
/// activations, parameters and gradients; master weights, optimizer state, statistics, loss and sums in fp32.
enum class Precision : uint8_t { Fp32, Fp64, Tf32, Bf16, Fp16 };
llvm::StringRef toString(Precision precision);

/// Which micro-step of an update a program is. `Only`: there is one.
enum class MicroStep : uint8_t { Only, First, Middle, Last };
llvm::StringRef toString(MicroStep step);

struct CompileOptions {
  unsigned ranks = 1;
  unsigned zero = 0;
  unsigned accumulate = 1;
  MicroStep microStep = MicroStep::Only;
  uint64_t bucketBytes = 0;              ///< `--bucket SIZE`; 0: by layer
  std::optional<uint64_t> prefetchLimit; ///< bytes of gathered buckets at one time, in use or ahead; default: the two largest neighbours
  Optimizer optimizer = Optimizer::AdamW;
  Precision precision = Precision::Fp32;
  bool reduceInFp32 = false; ///< `--reduce-dtype fp32`: gradients of 16-bit parameters too
  std::optional<double> dropout; ///< sets every dropout ratio
  std::string machine = "cpu";   ///< built-in name or JSON file
  std::string target = "cpu";
  uint64_t memory = 0;           ///< bytes that a rank may take, the machine's floor_bytes among them; 0: any. Changes no number

  /// The stage that matters: one rank has nobody to share with.
  unsigned stage() const { return ranks > 1 ? zero : 0; }
  /// In what the gradients of parameters of that type are packed and, over ranks, summed.
  DType packedGradientType(DType parameters) const {
    return reduceInFp32 || (accumulate > 1 && stage() <= 1) ? wideType(parameters) : parameters;
  }
  /// In what they are kept between micro-steps and until the update.
  DType keptGradientType(DType parameters) const {
    return reduceInFp32 || accumulate > 1 ? wideType(parameters) : parameters;
  }
};

} // namespace shardc
