// SPDX-License-Identifier: Apache-2.0
// Arrays go through shared memory in chunks, by two staging areas in turn for each rank and channel: a rank
// writes its area of chunk k + 2 only after all have met for chunk k + 1, and so have read what they wanted
// of chunk k.
#include "runtime/comm/Process.h"
#include "ir/base/Error.h"
#include "runtime/comm/Local.h"
#include "runtime/comm/Rendezvous.h"
#include "runtime/comm/Sum.h"
#include "runtime/comm/Watcher.h"
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace shardc {
namespace {

constexpr int64_t kAlign = 64;
/// Up to so many elements each rank sums all itself rather than wait for the others' parts.
constexpr int64_t kFewElements = 256;

int64_t roundUp(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Where everything lies in the shared memory; the same at all ranks.
struct Layout {
  explicit Layout(const ProcessGroupOptions &options)
      : ranks(options.size), groupBytes(roundUp(Group::bytes(ranks))),
        stagingBytes(roundUp(std::max<int64_t>(options.stagingBytes, kAlign * ranks))) {}

  int64_t staging(unsigned channel, unsigned turn, unsigned rank) const {
    return groupBytes + ((channel * 2 + turn) * int64_t(ranks) + rank) * stagingBytes;
  }
  int64_t bytes() const { return staging(Communicator::kChannels, 0, 0); }

  unsigned ranks;
  int64_t groupBytes, stagingBytes;
};

class ProcessCommunicator final : public Communicator {
public:
  ProcessCommunicator(const ProcessGroupOptions &options, const Layout &layout, char *memory,
                      std::vector<Watcher::Peer> peers)
      : Communicator(options.rank, options.size), layout_(layout), memory_(memory),
        group_(*reinterpret_cast<Group *>(memory)),
        watcher_(std::in_place, group_, options.rank, std::move(peers)) {
    for (unsigned channel = 0; channel < kChannels; ++channel)
      for (unsigned turn = 0; turn < 2; ++turn)
        for (unsigned r = 0; r < size(); ++r)
          channels_[channel].areas[turn].push_back(memory + layout.staging(channel, turn, r));
  }
  ~ProcessCommunicator() override {
    group_.leave(rank());
    watcher_.reset();
    munmap(memory_, layout_.bytes());
  }

  bool allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype) override {
    int64_t bytes = n * byteSize(dtype), chunk = layout_.stagingBytes;
    const char *from = static_cast<const char *>(slice);
    char *to = static_cast<char *>(whole);
    return chunks(channel, bytes, chunk, [&](Areas areas, int64_t begin, int64_t count) {
      copy(own(areas), from + begin, count);
      if (!meet(channel))
        return false;
      for (unsigned r = 0; r < size(); ++r)
        copy(to + r * bytes + begin, r == rank() ? from + begin : areas[r], count);
      return true;
    });
  }

  bool reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype) override {
    int64_t width = byteSize(dtype), chunk = layout_.stagingBytes / width / size();
    const char *from = static_cast<const char *>(whole);
    return chunks(channel, n, chunk, [&](Areas areas, int64_t begin, int64_t count) {
      for (unsigned r = 0; r < size(); ++r)
        copy(own(areas) + r * chunk * width, from + (r * n + begin) * width, count * width);
      if (!meet(channel))
        return false;
      sumParts(dtype, areas, rank() * chunk, static_cast<char *>(slice) + begin * width, count);
      return true;
    });
  }

  bool allReduce(unsigned channel, void *data, int64_t n, DType dtype) override {
    int64_t width = byteSize(dtype), chunk = layout_.stagingBytes / width;
    return chunks(channel, n, chunk, [&](Areas areas, int64_t begin, int64_t count) {
      char *here = static_cast<char *>(data) + begin * width;
      copy(own(areas), here, count * width);
      if (!meet(channel))
        return false;
      if (count <= kFewElements) {
        sumParts(dtype, areas, 0, here, count);
        return true;
      }
      // Nobody but this rank touches its part of anyone's area, until all have met again.
      Part part(count, size(), rank());
      sumParts(dtype, areas, part.begin, own(areas) + part.begin * width, part.count);
      if (!meet(channel))
        return false;
      for (unsigned r = 0; r < size(); ++r) {
        Part part(count, size(), r);
        copy(here + part.begin * width, areas[r] + part.begin * width, part.count * width);
      }
      return true;
    });
  }

  bool broadcast(unsigned channel, void *data, int64_t bytes, unsigned root) override {
    assert(root < size());
    return chunks(channel, bytes, layout_.stagingBytes, [&](Areas areas, int64_t begin, int64_t count) {
      char *here = static_cast<char *>(data) + begin;
      if (rank() == root)
        copy(own(areas), here, count);
      if (!meet(channel))
        return false;
      if (rank() != root)
        copy(here, areas[root], count);
      return true;
    });
  }

  void abort(const std::string &cause) override { group_.abort(rank(), causeOf(rank(), cause)); }
  std::string cause() const override { return group_.cause(); }

private:
  using Areas = llvm::ArrayRef<const char *>;
  struct Channel {
    std::vector<const char *> areas[2]; ///< by rank
    unsigned turn = 0;
  };

  /// Calls work(areas, begin, count) for each chunk of [0, n), once if n is 0, until it says false.
  template <typename F> bool chunks(unsigned channel, int64_t n, int64_t chunk, F work) {
    assert(channel < kChannels);
    Channel &state = channels_[channel];
    for (int64_t begin = 0; begin == 0 || begin < n; begin += chunk) {
      state.turn ^= 1;
      if (group_.aborted() || !work(Areas(state.areas[state.turn]), begin, std::min(chunk, n - begin)))
        return false;
    }
    return true;
  }

  bool meet(unsigned channel) { return group_.meet(channel, rank(), size()); }
  char *own(Areas areas) { return const_cast<char *>(areas[rank()]); }
  static void copy(void *to, const void *from, int64_t bytes) {
    if (to != from && bytes)
      memcpy(to, from, bytes);
  }

  Layout layout_;
  char *memory_;
  Group &group_;
  Channel channels_[kChannels];
  std::optional<Watcher> watcher_;
};

} // namespace

llvm::Expected<std::unique_ptr<Communicator>> joinProcessGroup(const ProcessGroupOptions &options) {
  assert(options.rank < options.size);
  if (options.size == 1)
    return std::move(makeLocalGroup(1)[0]);
  Layout layout(options);
  auto meeting = meetRanks(options, layout.bytes());
  if (!meeting)
    return meeting.takeError();
  void *memory = mmap(nullptr, layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, meeting->memory.get(), 0);
  if (memory == MAP_FAILED)
    return userError(llvm::Twine("ranks: no shared memory: ") + strerror(errno),
                     "the ranks need it to talk to each other");
  std::vector<Watcher::Peer> peers;
  for (unsigned i = 0; i < meeting->peers.size(); ++i)
    if (meeting->peers[i])
      peers.push_back({options.rank == 0 ? i : 0, std::move(meeting->peers[i])});
  return std::make_unique<ProcessCommunicator>(options, layout, static_cast<char *>(memory),
                                               std::move(peers));
}

} // namespace shardc
