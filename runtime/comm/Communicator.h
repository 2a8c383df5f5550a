// SPDX-License-Identifier: Apache-2.0
// What ranks say to each other: the collectives of a plan, on the host.
#pragma once

#include "ir/base/DType.h"
#include <cstdint>
#include <memory>
#include <string>

namespace shardc {

/// One rank's end of a group. All ranks make the same calls in the same order on each channel; calls on different channels may
/// run at once, from one thread each. A call blocks until this rank's part is done and its operands may be used again.
/// Sums run in rank order in the arrays' type, so that results are the same in each run, bit by bit. No call allocates.
class Communicator {
public:
  /// Channel 0 is the runtime's own (agreeing on stops, gathering weights); c > 0 is communicator c of the plan's commands.
  static constexpr unsigned kChannels = 4;

  virtual ~Communicator() = default;
  unsigned rank() const { return rank_; }
  unsigned size() const { return size_; }

  /// `slice`: n elements; `whole`: n x size. `slice` may be whole + rank x n.
  [[nodiscard]] virtual bool allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype) = 0;
  /// `whole`: n x size elements, left as they are but where `slice` lies; `slice`: n. `slice` may be whole + rank x n.
  [[nodiscard]] virtual bool reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype) = 0;
  /// n elements, in place. Any n: slices need not be equal.
  [[nodiscard]] virtual bool allReduce(unsigned channel, void *data, int64_t n, DType dtype) = 0;
  /// From rank `root` to all.
  [[nodiscard]] virtual bool broadcast(unsigned channel, void *data, int64_t bytes, unsigned root) = 0;

  /// Ends all communication of the group, from any thread, at any time: calls that wait and all later ones, of all ranks, return
  /// false. The first cause stays; the rank is put before it: "l0/MatMul: ..." becomes "rank 2: l0/MatMul: ...". Calls also return false when a rank has died or (where that can be seen) left.
  virtual void abort(const std::string &cause) = 0;
  bool aborted() const { return !cause().empty(); }
  /// "" while all is well; names the rank that failed: "rank 2: l0/MatMul: ...".
  virtual std::string cause() const = 0;

protected:
  Communicator(unsigned rank, unsigned size) : rank_(rank), size_(size) {}

private:
  unsigned rank_, size_;
};

} // namespace shardc
