// SPDX-License-Identifier: Apache-2.0
// Plans as text and as bytes, for tests.
#pragma once

#include "ir/plan/Plan.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace shardc {

/// What print(plan, stream) writes.
template <typename Print> std::string printed(Print print, const plan::Plan &plan) {
  std::string out;
  llvm::raw_string_ostream os(out);
  print(plan, os);
  return out;
}

/// The bytes of a plan file with a checksum that fits.
inline std::string repaired(std::string bytes) {
  bytes.resize(bytes.size() - 32);
  llvm::SHA256 hash;
  hash.update(bytes);
  auto sum = hash.final();
  return bytes.append(sum.begin(), sum.end());
}

} // namespace shardc
