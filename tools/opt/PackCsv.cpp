// SPDX-License-Identifier: Apache-2.0
#include "tools/opt/PackCsv.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "passes/memory/CheckPacking.h"
#include "passes/memory/Packing.h"
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace llvm;

namespace shardc {
namespace {

/// With room for sums; more than any machine has.
constexpr uint64_t kMostBytes = uint64_t(1) << 56;
/// Ten seconds or so for a capacity that is hard to reach, one where the lowest height is asked
/// for.
constexpr uint64_t kCapacityWork = uint64_t(1) << 33, kLowestWork = uint64_t(1) << 30;

struct Problem {
  std::vector<std::string> ids;
  std::vector<PackItem> items;
  std::vector<uint64_t> offsets; // as given; empty without the column
};

class Reader {
public:
  Reader(StringRef path, Problem &problem) : path_(path), problem_(problem) {}

  Error read(StringRef text) {
    StringSet<> ids;
    uint64_t total = 0;
    for (bool header = true; !text.empty();) {
      StringRef row;
      std::tie(row, text) = text.split('\n');
      ++line_;
      row = row.trim();
      if (row.empty())
        continue;
      SmallVector<StringRef> fields;
      row.split(fields, ',');
      if (Error error = header ? readHeader(fields) : readRow(fields))
        return error;
      if (!header && !ids.insert(problem_.ids.back()).second)
        return error("id", "'" + problem_.ids.back() + "' a second time", "each once");
      if (!header && (total += problem_.items.back().bytes) > kMostBytes)
        return error("size", "more than 2^56 in all", "less");
      header = false;
    }
    if (columns_ == 0)
      return userError(path_ + ": got an empty file, wanted id,lower,upper,size and a line for each buffer", kHint);
    return Error::success();
  }

private:
  static constexpr const char *kHint = "the first line is id,lower,upper,size";
  static constexpr const char *kNames[] = {"id", "lower", "upper", "size", "offset"};
  static constexpr unsigned kOffset = 4;

  Error error(const Twine &what, const Twine &got, const Twine &wanted) {
    return userError(
        path_ + ":" + Twine(line_) + ": " + what + ": got " + got + ", wanted " + wanted, kHint);
  }

  Error readHeader(ArrayRef<StringRef> fields) {
    columns_ = fields.size();
    for (auto [column, field] : llvm::enumerate(fields)) {
      StringRef name = field.trim();
      for (auto [at, known] : llvm::zip_equal(at_, kNames))
        if (name == known) {
          if (at >= 0)
            return error("header", "column '" + name + "' twice", "it once");
          at = int(column);
        }
      if (name == "alignment" || name == "hint" || name == "gaps" || name == "end")
        return error("header", "column '" + name + "'", "buffers with one life and one size alone");
    }
    for (unsigned i = 0; i < kOffset; ++i)
      if (at_[i] < 0)
        return error("header", "no column '" + Twine(kNames[i]) + "'", "id,lower,upper,size");
    return Error::success();
  }

  Error readRow(ArrayRef<StringRef> fields) {
    if (fields.size() != columns_)
      return error("row", Twine(fields.size()) + " fields",
                   Twine(columns_) + " as in the first line");
    uint64_t numbers[kOffset + 1] = {};
    for (unsigned i = 1; i <= kOffset; ++i) {
      if (at_[i] < 0)
        continue;
      StringRef field = fields[at_[i]].trim();
      if (field.getAsInteger(10, numbers[i]) || numbers[i] > kMostBytes)
        return error(kNames[i], "'" + field + "'", "a whole number from 0 to 2^56");
    }
    auto [id, lower, upper, size, offset] = numbers;
    if (lower >= upper)
      return error("life", "[" + Twine(lower) + ", " + Twine(upper) + ")", "lower below upper");
    problem_.ids.push_back(fields[at_[0]].trim().str());
    problem_.items.push_back({size, lower, upper});
    if (at_[kOffset] >= 0)
      problem_.offsets.push_back(offset);
    return Error::success();
  }

  StringRef path_;
  Problem &problem_;
  unsigned line_ = 0;
  size_t columns_ = 0;
  int at_[kOffset + 1] = {-1, -1, -1, -1, -1}; // by name: its column
};

void print(raw_ostream &os, const Problem &problem, const PackResult &result, double seconds) {
  uint64_t gap = result.height - result.lowerBound;
  os << "buffers      " << problem.items.size() << "\n";
  os << "height       " << result.height << "  (" << result.method << ")\n";
  os << "lower bound  " << result.lowerBound << "\n";
  os << "gap          " << gap << "  ("
     << format("%.2f", result.lowerBound ? 100.0 * double(gap) / double(result.lowerBound) : 0.0)
     << " %)\n";
  os << "time         " << format("%.2f", seconds) << " s\n";
}

/// The packing that the file says.
Expected<PackResult> givenPacking(StringRef path, const Problem &problem, uint64_t lowerBound) {
  PackResult given;
  given.offsets = problem.offsets;
  given.lowerBound = lowerBound;
  given.method = "as given";
  for (auto [item, offset] : llvm::zip_equal(problem.items, problem.offsets))
    given.height = std::max(given.height, offset + item.bytes);
  if (Error error = checkPacking(problem.items, 1, given))
    return userError(path + ": its offsets are no packing: " + toString(std::move(error)),
                     "items count from 0; leave the column 'offset' out");
  return given;
}

void write(raw_ostream &os, const Problem &problem, ArrayRef<uint64_t> offsets) {
  os << "id,lower,upper,size,offset\n";
  for (auto [id, item, offset] : llvm::zip_equal(problem.ids, problem.items, offsets))
    os << id << "," << item.first << "," << item.last << "," << item.bytes << "," << offset << "\n";
}

constexpr uint64_t kMostFileBytes = uint64_t(1) << 30;

} // namespace

Error packCsv(StringRef path, std::optional<uint64_t> capacity, StringRef outputPath) {
  auto buffer = readFile(path, kMostFileBytes);
  if (!buffer)
    return buffer.takeError();
  Problem problem;
  if (Error error = Reader(path, problem).read((*buffer)->getBuffer()))
    return error;
  auto start = std::chrono::steady_clock::now();
  PackLimits limits{.capacity = capacity.value_or(0), .slack = 0, .work = kLowestWork};
  if (capacity && *capacity >= peakOf(problem.items))
    limits.work = kCapacityWork;
  PackResult result = pack(problem.items, 1, limits);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (Error error = checkPacking(problem.items, 1, result))
    return userError(path + ": the packer is wrong: " + toString(std::move(error)),
                     "please report it, with the file");
  std::optional<PackResult> given;
  if (!problem.offsets.empty()) {
    auto packing = givenPacking(path, problem, result.lowerBound);
    if (!packing)
      return packing.takeError();
    given = std::move(*packing);
    if (given->height < result.height)
      result = *given;
  }
  raw_ostream &os = outputPath == "-" ? errs() : outs();
  print(os, problem, result, seconds.count());
  if (given)
    os << "as given     " << given->height << "\n";
  if (capacity && result.height > *capacity)
    return userError(
        path + ": does not fit: got a height of " + Twine(result.height) + ", wanted " +
            Twine(*capacity),
        result.lowerBound > *capacity
            ? "no packing can: " + Twine(result.lowerBound) + " live at once"
            : Twine("what lives at once would fit; none was found within the work limit"),
        Exit::DoesNotFit);
  if (outputPath.empty())
    return Error::success();
  return writeFileAtomically(outputPath, [&](raw_ostream &file) {
    write(file, problem, result.offsets);
    return Error::success();
  });
}

} // namespace shardc
