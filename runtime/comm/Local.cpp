// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/Local.h"
#include "runtime/comm/Group.h"
#include "runtime/comm/Sum.h"
#include <cassert>
#include <cstring>
#include <new>
#include <thread>

namespace shardc {
namespace {

struct SharedState {
  explicit SharedState(unsigned ranks)
      : memory(::operator new(Group::bytes(ranks), std::align_val_t(alignof(Group)))) {
    memset(memory, 0, Group::bytes(ranks));
    for (Channel &channel : channels)
      channel.arrays.resize(ranks);
  }
  ~SharedState() { ::operator delete(memory, std::align_val_t(alignof(Group))); }
  SharedState(const SharedState &) = delete;

  Group &group() { return *static_cast<Group *>(memory); }

  struct alignas(64) Channel {
    std::vector<const char *> arrays; ///< by rank: what it shows the others in this call
    std::atomic<uint32_t> readers = 0;
  };
  void *memory;
  Channel channels[Communicator::kChannels];
};

class LocalCommunicator final : public Communicator {
public:
  LocalCommunicator(std::shared_ptr<SharedState> state, unsigned rank, unsigned size)
      : Communicator(rank, size), state_(std::move(state)), group_(state_->group()) {}
  ~LocalCommunicator() override { group_.leave(rank()); }

  bool allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype) override {
    Call call(*this, channel, slice);
    int64_t bytes = n * byteSize(dtype);
    if (!call.read())
      return false;
    for (unsigned r = 0; r < size(); ++r)
      copy(static_cast<char *>(whole) + r * bytes, call.arrays()[r], bytes);
    return call.finish();
  }

  bool reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype) override {
    Call call(*this, channel, whole);
    if (!call.read())
      return false;
    sum(call, n * rank(), slice, n, dtype);
    return call.finish();
  }

  bool allReduce(unsigned channel, void *data, int64_t n, DType dtype) override {
    Call call(*this, channel, data);
    if (!call.read())
      return false;
    // Nobody but this rank touches its part of anyone's array, until all have passed the next barrier.
    int64_t bytes = byteSize(dtype);
    Part own(n, size(), rank());
    sum(call, own.begin, static_cast<char *>(data) + own.begin * bytes, own.count, dtype);
    if (!call.read())
      return false;
    for (unsigned r = 0; r < size(); ++r) {
      Part part(n, size(), r);
      copy(static_cast<char *>(data) + part.begin * bytes, call.arrays()[r] + part.begin * bytes,
           part.count * bytes);
    }
    return call.finish();
  }

  bool broadcast(unsigned channel, void *data, int64_t bytes, unsigned root) override {
    assert(root < size());
    Call call(*this, channel, data);
    if (!call.read())
      return false;
    copy(data, call.arrays()[root], bytes);
    return call.finish();
  }

  void abort(const std::string &cause) override { group_.abort(rank(), causeOf(rank(), cause)); }
  std::string cause() const override { return group_.cause(); }

private:
  /// A call from its first barrier to its last. Between them it reads the others' arrays, in sections that
  /// begin with `read`.
  class Call {
  public:
    Call(LocalCommunicator &self, unsigned channel, const void *array)
        : self_(self), channel_(self.state_->channels[channel]), index_(channel) {
      assert(channel < kChannels);
      channel_.arrays[self.rank()] = static_cast<const char *>(array);
    }
    ~Call() {
      leaveSection();
      // Who begins to read from here on sees that the group has ended, and does not.
      if (failed_)
        while (channel_.readers.load())
          std::this_thread::yield();
    }
    Call(const Call &) = delete;

    /// All ranks are here, and their arrays may be read.
    bool read() {
      if (!finish())
        return false;
      channel_.readers.fetch_add(1);
      reading_ = true;
      if (self_.group_.aborted()) // one of them may have given up
        failed_ = true;
      return !failed_;
    }
    /// All ranks have done their reading.
    bool finish() {
      leaveSection();
      if (self_.group_.aborted() || !self_.group_.meet(index_, self_.rank(), self_.size()))
        failed_ = true;
      return !failed_;
    }
    llvm::ArrayRef<const char *> arrays() const { return channel_.arrays; }

  private:
    void leaveSection() {
      if (reading_)
        channel_.readers.fetch_sub(1);
      reading_ = false;
    }

    LocalCommunicator &self_;
    SharedState::Channel &channel_;
    unsigned index_;
    bool reading_ = false, failed_ = false;
  };

  static void copy(void *to, const void *from, int64_t bytes) {
    if (to != from && bytes)
      memcpy(to, from, bytes);
  }

  /// The sum over ranks of elements [begin, begin + n) of their arrays.
  void sum(const Call &call, int64_t begin, void *out, int64_t n, DType dtype) {
    sumParts(dtype, call.arrays(), begin, out, n);
  }

  std::shared_ptr<SharedState> state_;
  Group &group_;
};

} // namespace

std::vector<std::unique_ptr<Communicator>> makeLocalGroup(unsigned ranks) {
  assert(ranks > 0);
  auto state = std::make_shared<SharedState>(ranks);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (unsigned r = 0; r < ranks; ++r)
    ends.push_back(std::make_unique<LocalCommunicator>(state, r, ranks));
  return ends;
}

} // namespace shardc
