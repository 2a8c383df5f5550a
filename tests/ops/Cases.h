// SPDX-License-Identifier: Apache-2.0
// Cases of ops: which op, operands (random numbers, mostly), attributes. Every op of the table has
// some (CoverageTest); the harness checks gradients, the reference and the kernels on each.
#pragma once

#include "ir/ops/OpDef.h"
#include <string>
#include <vector>

namespace shardc::test {

struct OperandSpec {
  enum Fill : uint8_t {
    Absent,
    Normal,   ///< anything, about 1 in size
    Positive, ///< in [0.5, 2.5], moved up by `low`
    Distinct, ///< no two closer than 0.05, none near an integer: for what has kinks there
    Integers, ///< in [low, high)
    Given,
  } fill = Absent;
  Dims dims = {};
  DType dtype = DType::F64; ///< F64 stands for the float type of the run
  int64_t low = 0, high = 0;
  std::vector<double> values = {};
  bool constant = false; ///< a `constant` op rather than a parameter or input
  bool wide = false;     ///< F64 in every run
  bool statistic = false; ///< F32 in runs of 16-bit floats

  bool isFloat() const { return dtype == DType::F64; }
};

inline OperandSpec x(Dims dims) { return {.fill = OperandSpec::Normal, .dims = dims}; }
inline OperandSpec positive(Dims dims) { return {.fill = OperandSpec::Positive, .dims = dims}; }
/// At least `low`: a possible logarithm of the sum of exponentials of smaller numbers.
inline OperandSpec above(Dims dims, int64_t low) {
  return {.fill = OperandSpec::Positive, .dims = dims, .low = low};
}
inline OperandSpec distinct(Dims dims) { return {.fill = OperandSpec::Distinct, .dims = dims}; }
inline OperandSpec given(Dims dims, std::vector<double> values, DType dtype = DType::F64) {
  return {.fill = OperandSpec::Given, .dims = dims, .dtype = dtype, .values = std::move(values)};
}
inline OperandSpec number(double value) {
  return {.fill = OperandSpec::Given, .dims = {}, .values = {value}, .constant = true};
}
/// An f64 constant, also where the run is in f32.
inline OperandSpec wide(Dims dims, std::vector<double> values) {
  return {.fill = OperandSpec::Given,
          .dims = dims,
          .values = std::move(values),
          .constant = true,
          .wide = true};
}
/// A sum, a statistic or a master value: never a 16-bit float.
inline OperandSpec statistic(OperandSpec spec) {
  spec.statistic = true;
  return spec;
}
inline OperandSpec integers(Dims dims, int64_t low, int64_t high, DType dtype = DType::I64) {
  return {.fill = OperandSpec::Integers, .dims = dims, .dtype = dtype, .low = low, .high = high};
}
inline OperandSpec bools(Dims dims) { return integers(dims, 0, 2, DType::Bool); }
inline OperandSpec absent() { return {}; }

struct OpCase {
  const OpDef *def;
  std::string what; ///< a word or two, letters and digits
  std::vector<OperandSpec> operands;
  Attrs attrs = {};
  /// Results that the loss reads.
  std::vector<unsigned> results = {0};
  bool random = false; ///< draws numbers: only kernels run it
  bool smooth = true;  ///< false: too large or too sharp for central differences
};

using OpCases = std::vector<OpCase>;

// By family, each in a file of its name.
void pointwiseCases(OpCases &cases);
void movementCases(OpCases &cases);
void reduceCases(OpCases &cases);
void normCases(OpCases &cases);
void attentionCases(OpCases &cases);
void relativeAttentionCases(OpCases &cases);
void lossCases(OpCases &cases);
void updateCases(OpCases &cases);
void collectiveCases(OpCases &cases);
void dropoutCases(OpCases &cases);

OpCases allCases();
/// Of one op. Never empty for an op with operands.
OpCases casesOf(const OpDef &def);

} // namespace shardc::test
