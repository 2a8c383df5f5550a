// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

Attrs sliced(Ints starts, Ints sizes, Ints steps) {
  return {{"starts", starts}, {"sizes", sizes}, {"steps", steps}};
}
Attrs padded(Ints before, Ints after, double value) {
  return {{"before", before}, {"after", after}, {"value", value}};
}
Attrs axis(int64_t axis) { return {{"axis", axis}}; }
Attrs scatter(int64_t axis, const char *reduction) {
  return {{"axis", axis}, {"reduction", std::string(reduction)}};
}

void views(OpCases &cases) {
  cases.push_back({&kReshape, "Merge", {x({2, 3, 4})}, {{"dims", Ints{6, 4}}}});
  cases.push_back({&kReshape, "ToScalar", {x({1, 1})}, {{"dims", Ints{}}}});
  cases.push_back({&kReshape, "Empty", {x({0, 3})}, {{"dims", Ints{3, 0, 2}}}});
  cases.push_back({&kTranspose, "Three", {x({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}}});
  cases.push_back({&kTranspose, "Heads", {x({2, 3, 4, 2})}, {{"perm", Ints{0, 2, 1, 3}}}});
  cases.push_back({&kSlice, "Inner", {x({4, 5})}, sliced({1, 2}, {2, 3}, {1, 1})});
  cases.push_back({&kSlice, "Steps", {x({7, 5})}, sliced({1, 0}, {3, 3}, {2, 2})});
  cases.push_back({&kSlice, "Backwards", {x({7, 5})}, sliced({6, 3}, {4, 2}, {-2, -1})});
  cases.push_back({&kSlice, "One", {x({3, 4})}, sliced({2, 1}, {1, 1}, {-9, 7})});
  cases.push_back({&kSlice, "Nothing", {x({3, 4})}, sliced({3, 0}, {0, 4}, {1, 1})});
  cases.push_back({&kExpand, "Rows", {x({3})}, {{"dims", Ints{2, 3}}}});
  cases.push_back({&kExpand, "Inner", {x({2, 1, 3})}, {{"dims", Ints{2, 4, 3}}}});
  cases.push_back({&kExpand, "Scalar", {x({})}, {{"dims", Ints{2, 2}}}});
  cases.push_back({&kExpand, "ToNothing", {x({1, 3})}, {{"dims", Ints{0, 3}}}});
  cases.push_back({&kCopy, "Matrix", {x({3, 5})}});
  cases.push_back({&kJoin, "Two", {x({2, 3}), x({1, 3})}});
  cases.push_back({&kJoin, "Three", {x({2}), x({1}), x({3})}});
  cases.push_back({&kConcat, "Last", {x({2, 3}), x({2, 1}), x({2, 2})}, axis(-1)});
  cases.push_back({&kConcat, "First", {x({2, 3}), x({1, 3})}, axis(0)});
  cases.push_back({&kConcat, "Empty", {x({2, 0}), x({2, 3})}, axis(1)});
  cases.push_back({&kConcat, "Integers", {integers({2}, 0, 9), integers({1}, 0, 9)}, axis(0)});
  cases.push_back({&kPad, "Both", {x({2, 3})}, padded({1, 0}, {2, 1}, 0.5)});
  cases.push_back({&kPad, "None", {x({2, 3})}, padded({0, 0}, {0, 0}, 0)});
  cases.push_back({&kPad, "FromEmpty", {x({0, 2})}, padded({1, 0}, {0, 1}, -1)});
}

void gathers(OpCases &cases) {
  cases.push_back({&kGather, "Rows", {x({4, 3}), integers({5}, -4, 4)}, axis(0)});
  cases.push_back({&kGather, "Middle", {x({2, 4, 3}), integers({2, 2}, 0, 4)}, axis(1)});
  cases.push_back(
      {&kGather, "LastNegativeAxis", {x({2, 4}), integers({3}, 0, 4, DType::I32)}, axis(-1)});
  cases.push_back({&kGather, "ScalarIndex", {x({4, 3}), integers({}, 0, 4)}, axis(0)});
  cases.push_back({&kGather, "NoIndices", {x({4, 3}), integers({0}, 0, 4)}, axis(0)});
  cases.push_back({&kGatherGrad,
                   "Middle",
                   {x({2, 2, 2, 3}), integers({2, 2}, -4, 4)},
                   {{"axis", int64_t(1)}, {"size", int64_t(4)}}});
  cases.push_back({&kGatherElements, "Last", {x({2, 3, 5}), integers({2, 3, 4}, -5, 5)}, axis(-1)});
  cases.push_back({&kGatherElements, "First", {x({4, 3}), integers({6, 3}, 0, 4)}, axis(0)});
  cases.push_back({&kGatherElements, "Smaller", {x({4, 5}), integers({2, 3}, 0, 5)}, axis(1)});
  cases.push_back({&kGatherElementsGrad,
                   "Last",
                   {x({2, 3, 4}), integers({2, 3, 4}, -5, 5)},
                   {{"axis", int64_t(-1)}, {"size", int64_t(5)}}});
  cases.push_back({&kGatherNd, "Elements", {x({3, 4}), integers({5, 2}, -3, 3)}});
  cases.push_back({&kGatherNd, "Slices", {x({3, 4, 2}), integers({2, 2, 1}, 0, 3)}});
  cases.push_back({&kGatherNd,
                   "Batch",
                   {x({2, 3, 4}), integers({2, 5, 1}, 0, 3)},
                   {{"batch_dims", int64_t(1)}}});
  cases.push_back({&kGatherNd,
                   "TwoBatchDims",
                   {x({2, 3, 4}), integers({2, 3, 1}, -4, 4, DType::I32)},
                   {{"batch_dims", int64_t(2)}}});
  cases.push_back({&kEmbedding, "Matrix", {x({5, 3}), integers({2, 4}, -5, 5)}});
  cases.push_back({&kEmbedding, "Nothing", {x({5, 3}), integers({0}, 0, 5)}});
  cases.push_back({&kEmbeddingGrad,
                   "Repeats",
                   {x({2, 6, 3}), integers({2, 6}, -4, 4)},
                   {{"rows", int64_t(4)}}});
  cases.push_back({&kEmbeddingGrad,
                   "Accumulates",
                   {x({6, 3}), integers({6}, 0, 4), x({4, 3})},
                   {{"rows", int64_t(4)}}});
}

void scatters(OpCases &cases) {
  for (const char *reduction : {"none", "add", "mul", "max", "min"}) {
    // Without repeated places: `none` has no meaning there.
    OperandSpec places = given({2, 3}, {0, 2, -2, 1, 0, 4}, DType::I64);
    cases.push_back({&kScatterElements,
                     reduction,
                     {distinct({2, 5}), places, x({2, 3})},
                     scatter(1, reduction)});
    OperandSpec rows = given({2, 1}, {2, -3}, DType::I64);
    cases.push_back({&kScatterNd,
                     reduction,
                     {distinct({3, 4}), rows, x({2, 4})},
                     {{"reduction", std::string(reduction)}}});
  }
  for (const char *reduction : {"add", "mul", "max", "min"}) {
    std::string name = std::string(reduction) + "Repeats";
    OperandSpec places = given({2, 3}, {0, 1, 1, 0, 0, 0}, DType::I64);
    cases.push_back(
        {&kScatterElements, name, {distinct({2, 3}), places, x({2, 3})}, scatter(0, reduction)});
    OperandSpec points = given({3, 2}, {0, 1, 0, 1, 2, 0}, DType::I64);
    cases.push_back({&kScatterNd,
                     name,
                     {distinct({3, 2}), points, x({3})},
                     {{"reduction", std::string(reduction)}}});
  }
  OperandSpec zeros = given({4}, {2, 0, 3, 0}), updates = given({4}, {0, 5, 0, 0});
  cases.push_back({&kScatterElements,
                   "mulZeros",
                   {zeros, given({4}, {0, 0, 1, 2}, DType::I64), updates},
                   scatter(0, "mul")});
  cases.push_back({&kScatterElements,
                   "Integers",
                   {integers({4}, 0, 9), given({2}, {3, 0}, DType::I64), integers({2}, 0, 9)},
                   scatter(0, "none")});
}

} // namespace

void movementCases(OpCases &cases) {
  views(cases);
  gathers(cases);
  scatters(cases);
  for (int64_t exclusive : {0, 1})
    for (int64_t reverse : {0, 1})
      cases.push_back(
          {&kCumSum,
           std::string(exclusive ? "Exclusive" : "Inclusive") + (reverse ? "Reverse" : ""),
           {x({3, 4})},
           {{"axis", int64_t(-1)}, {"exclusive", exclusive}, {"reverse", reverse}}});
  cases.push_back({&kCumSum, "First", {x({3, 4})}, axis(0)});
  cases.push_back({&kCumSum, "Integers", {integers({5}, 0, 3)}, axis(0)});
  OperandSpec start = number(1), limit = number(4.2), delta = number(0.5);
  cases.push_back({&kRange, "Floats", {start, limit, delta}});
}

} // namespace shardc::test
