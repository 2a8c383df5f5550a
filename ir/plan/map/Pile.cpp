// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/map/Pile.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Colors.h"
#include "llvm/ADT/StringExtras.h"
#include <tuple>

using namespace llvm;

namespace shardc::map {

std::string stemOf(StringRef name) { return name.rtrim("0123456789").rtrim("./_").str(); }

std::vector<std::string> labelsOf(StringRef stem) {
  auto [path, last] = stem.rsplit('.');
  if (last.empty())
    return {stem.str()};
  std::string parent = path.substr(path.rfind('.') + 1).str();
  return {stem.str(), parent + "." + last.str(), parent, last.str()};
}

std::vector<Piece> pileOf(const Scene &scene) {
  auto keyOf = [&](uint32_t index) {
    const plan::Buffer &b = scene.plan.buffers(int(index));
    return std::tuple(!b.persistent(), &colorOf(b.kind()) - kKindColors,
                      b.persistent() ? 0 : scene.parts.ofBuffer[index]);
  };
  std::vector<uint32_t> order = findPeak(scene.plan, scene.index).buffers;
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return keyOf(a) < keyOf(b); });
  std::vector<Piece> pieces;
  uint64_t height = 0;
  for (auto [i, index] : enumerate(order)) {
    const plan::Buffer &b = scene.plan.buffers(int(index));
    uint32_t part = scene.parts.ofBuffer[index];
    if (i == 0 || keyOf(order[i - 1]) != keyOf(index))
      pieces.push_back({height, height,
                        b.persistent() ? colorOf(b.kind()).label : scene.parts.names[part],
                        b.kind(), !b.persistent() && part % 2 == 1});
    height += alignedBytes(b);
    pieces.back().end = height;
  }
  return pieces;
}

std::vector<ArrayRef<Piece>> linesOf(ArrayRef<Piece> pieces, function_ref<double(uint64_t)> level,
                                     double line) {
  auto isThin = [&](ArrayRef<Piece> run) {
    return level(run.front().begin) - level(run.back().end) < line;
  };
  std::vector<ArrayRef<Piece>> ofStem, lines;
  for (const Piece &piece : pieces) {
    bool joins = !ofStem.empty() && isThin(piece) && isThin(ofStem.back().back()) &&
                 stemOf(piece.name) == stemOf(ofStem.back().back().name);
    if (joins)
      ofStem.back() = {ofStem.back().data(), ofStem.back().size() + 1};
    else
      ofStem.push_back(piece);
  }
  for (ArrayRef<Piece> run : ofStem)
    if (!lines.empty() && isThin(run) && isThin(lines.back()))
      lines.back() = {lines.back().data(), lines.back().size() + run.size()};
    else
      lines.push_back(run);
  return lines;
}

/// Names in a row; where they are too long, without how they begin, as long as they stay apart.
static std::string inARow(std::vector<std::string> names, unsigned columns) {
  while (columnsOf(join(names, ", ")) > columns) {
    std::vector<std::string> shorter;
    for (StringRef name : names) {
      StringRef tail = name.split('.').second;
      shorter.push_back((tail.empty() ? name : tail).str());
    }
    for (size_t i = 0; i < shorter.size(); ++i)
      if (is_contained(ArrayRef(shorter).drop_front(i + 1), shorter[i]))
        return shortened(join(names, ", "), columns);
    if (shorter == names)
      break;
    names = std::move(shorter);
  }
  return shortened(join(names, ", "), columns);
}

std::string describe(ArrayRef<Piece> pieces) {
  constexpr unsigned kColumns = 29;
  struct Share {
    std::string stem, name;
    uint64_t bytes;
  };
  std::vector<Share> shares;
  uint64_t bytes = pieces.back().end - pieces.front().begin;
  for (const Piece &piece : pieces) {
    uint64_t size = piece.end - piece.begin;
    std::string stem = stemOf(piece.name);
    auto known = find_if(shares, [&](const Share &share) { return share.stem == stem; });
    if (known == shares.end()) {
      shares.push_back({stem, piece.name, size});
      continue;
    }
    known->bytes += size;
    if (known->name != piece.name)
      known->name = stem;
  }
  std::vector<std::string> names;
  for (const Share &share : shares)
    if (share.bytes * 20 >= bytes)
      names.push_back(share.name);
  return bytesText(bytes) + "  " + inARow(names, kColumns);
}

} // namespace shardc::map
