// SPDX-License-Identifier: Apache-2.0
// The algorithms that were found to be the fastest for products, by device, library version and problem: a text file, a line
// for each. Needs no device.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace shardc::cuda {

/// The library's description of an algorithm, which the same version of it understands.
using AlgorithmBytes = std::array<uint8_t, 64>;

class Tuning {
public:
  /// What lies at `path`, nothing where there is no file; a damaged line is as if it were not there.
  static Tuning read(llvm::StringRef path);
  /// The form of the file; what is no line of it is left out.
  static Tuning parse(llvm::StringRef text);
  std::string text() const;

  std::optional<AlgorithmBytes> find(llvm::StringRef key) const;
  /// Keys have no line end.
  void set(llvm::StringRef key, const AlgorithmBytes &algorithm);
  void add(const Tuning &other);
  bool empty() const { return byKey_.empty(); }

  /// Adds all of this to what the file holds now: several processes may share it. Errors: it cannot
  /// be written; it holds something else, which would be lost.
  llvm::Error mergeInto(llvm::StringRef path) const;

private:
  std::map<std::string, AlgorithmBytes, std::less<>> byKey_;
};

} // namespace shardc::cuda
