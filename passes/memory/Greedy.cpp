// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Greedy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cmath>
#include <numeric>

using namespace llvm;

namespace shardc {
namespace {

/// Larger keys first.
std::vector<uint32_t> orderBy(ArrayRef<PackItem> items,
                              function_ref<double(const PackItem &)> key) {
  std::vector<double> keys;
  for (const PackItem &item : items)
    keys.push_back(key(item));
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
    if (keys[a] != keys[b])
      return keys[a] > keys[b];
    if (items[a].bytes != items[b].bytes)
      return items[a].bytes > items[b].bytes;
    return items[a].first < items[b].first;
  });
  return order;
}

double life(const PackItem &item) { return double(item.last - item.first); }

} // namespace

std::vector<GreedyOrder> greedyOrders(ArrayRef<PackItem> items) {
  struct Key {
    const char *name;
    double (*of)(const PackItem &);
  };
  static constexpr Key kKeys[] = {
      {"life", [](const PackItem &i) { return life(i); }},
      {"size", [](const PackItem &i) { return double(i.bytes); }},
      {"size-life", [](const PackItem &i) { return double(i.bytes) * std::sqrt(life(i)); }},
      {"area", [](const PackItem &i) { return double(i.bytes) * life(i); }},
      {"begin", [](const PackItem &i) { return -double(i.first); }},
      {"end", [](const PackItem &i) { return double(i.last); }},
  };
  std::vector<GreedyOrder> orders;
  for (Fit fit : {Fit::Smallest, Fit::Lowest})
    for (const Key &key : kKeys)
      orders.push_back({key.name, fit, orderBy(items, key.of)});
  return orders;
}

} // namespace shardc
