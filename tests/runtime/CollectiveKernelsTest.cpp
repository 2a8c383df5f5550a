// SPDX-License-Identifier: Apache-2.0
// Collectives as kernels: which operands they take, and that they call the communicator with these.
#include "runtime/comm/Communicator.h"
#include "tests/runtime/KernelHarness.h"
#include "gtest/gtest.h"
#include <cstring>

namespace shardc::host {
namespace {

constexpr DType kF = DType::F32;
constexpr unsigned kRank = 1, kRanks = 3;
constexpr int64_t kSlice = 4;

/// Writes down what it is asked for.
class Recorder final : public Communicator {
public:
  Recorder() : Communicator(kRank, kRanks) {}
  bool allGather(unsigned channel, const void *slice, void *whole, int64_t n, DType dtype) override {
    return note("all_gather", channel, slice, whole, n, dtype);
  }
  bool reduceScatter(unsigned channel, const void *whole, void *slice, int64_t n, DType dtype) override {
    return note("reduce_scatter", channel, whole, slice, n, dtype);
  }
  bool allReduce(unsigned channel, void *data, int64_t n, DType dtype) override {
    return note("all_reduce", channel, data, data, n, dtype);
  }
  bool broadcast(unsigned, void *, int64_t, unsigned) override { return false; }
  void abort(const std::string &) override {}
  std::string cause() const override { return ""; }

  std::string call;
  unsigned channel = 0;
  const void *from = nullptr;
  void *to = nullptr;
  int64_t n = 0;
  DType dtype = DType::Bool;
  bool answer = true;

private:
  bool note(const char *name, unsigned c, const void *a, void *b, int64_t count, DType type) {
    call = name, channel = c, from = a, to = b, n = count, dtype = type;
    return answer;
  }
};

/// A command on communicator 2 whose operands are parts of one array of floats.
class Collective {
public:
  explicit Collective(const char *kernel) {
    command.set_kernel(kernel);
    command.set_communicator(2);
    attr("ranks", kRanks);
    binding.place = "here";
    binding.command = &command;
    binding.fault = &fault;
    binding.communicator = &recorder;
  }
  Collective &attr(const char *name, int64_t value) {
    plan::Attr *attr = nullptr;
    for (plan::Attr &old : *command.mutable_attrs())
      if (old.name() == name)
        attr = &old;
    if (!attr)
      (attr = command.add_attrs())->set_name(name);
    attr->set_i(value);
    return *this;
  }
  Array part(int64_t first, Dims dims, DType dtype = kF) {
    Array a;
    a.data = memory + first;
    a.dtype = dtype;
    a.dims = dims;
    a.strides = rowMajorStrides(dims);
    return a;
  }
  Collective &in(int64_t first, Dims dims, DType dtype = kF) {
    binding.in.push_back(part(first, dims, dtype));
    return *this;
  }
  Collective &out(int64_t first, Dims dims, DType dtype = kF) {
    binding.out.push_back(part(first, dims, dtype));
    return *this;
  }
  /// "" if the kernel takes it; it has run then.
  std::string run() {
    BoundKernel kernel = findKernel(command.kernel())(binding);
    if (!kernel)
      return messageOf(kernel.takeError());
    (*kernel)->run();
    return "";
  }
  void expectCall(const char *name, int64_t from, int64_t to, int64_t n) {
    EXPECT_EQ(run(), "");
    EXPECT_EQ(recorder.call, name);
    EXPECT_EQ(recorder.channel, 2u);
    EXPECT_EQ(recorder.from, memory + from);
    EXPECT_EQ(recorder.to, memory + to);
    EXPECT_EQ(recorder.n, n);
    EXPECT_EQ(recorder.dtype, kF);
    EXPECT_FALSE(fault.raised());
  }

  float memory[64] = {};
  plan::Command command;
  Binding binding;
  Fault fault;
  Recorder recorder;
};

constexpr int64_t kWhole = kSlice * kRanks;

TEST(CollectiveKernels, AllGather) {
  Collective("all_gather_start").in(0, {kSlice}).out(16, {kWhole}).expectCall("all_gather", 0, 16, kSlice);
  // Over `into`, with the slice in its place or elsewhere.
  Collective("all_gather_start").in(0, {kSlice}).in(16, {kWhole}).out(16, {kWhole}).expectCall("all_gather", 0, 16, kSlice);
  Collective("all_gather_start")
      .in(kRank * kSlice, {kSlice})
      .in(0, {kWhole})
      .out(0, {kWhole})
      .expectCall("all_gather", kRank * kSlice, 0, kSlice);
}

TEST(CollectiveKernels, ReduceScatter) {
  Collective("reduce_scatter_start").in(16, {kWhole}).out(0, {kSlice}).expectCall("reduce_scatter", 16, 0, kSlice);
  Collective("reduce_scatter_start")
      .attr("in_place", 1)
      .in(0, {kWhole})
      .out(kRank * kSlice, {kSlice})
      .expectCall("reduce_scatter", 0, kRank * kSlice, kSlice);
}

TEST(CollectiveKernels, AllReduce) {
  Collective("all_reduce_start").in(8, {5}).out(8, {5}).expectCall("all_reduce", 8, 8, 5);
}

TEST(CollectiveKernels, RefuseWhatDoesNotFit) {
  auto gather = [] { return Collective("all_gather_start"); };
  auto reduce = [] { return Collective("reduce_scatter_start"); };
  auto sum = [] { return Collective("all_reduce_start"); };
  EXPECT_EQ(gather().attr("ranks", 2).in(0, {kSlice}).out(16, {8}).run(),
            "here: all_gather_start: attribute ranks: got 2, wanted 3");
  EXPECT_EQ(gather().in(0, {kSlice}).out(16, {8}).run(),
            "here: all_gather_start: sizes: got a slice of 4 and a whole of 8 elements, wanted one of 3 equal slices");
  for (unsigned c : {0u, 4u, 1000u}) {
    Collective channel("all_gather_start");
    channel.command.set_communicator(c);
    EXPECT_EQ(channel.in(0, {kSlice}).out(16, {kWhole}).run(),
              "here: all_gather_start: communicator: got " + std::to_string(c) + ", wanted 1 to 3");
  }
  EXPECT_NE(gather().in(0, {kSlice}).out(16, {3, kSlice}).run(), "");
  EXPECT_NE(gather().in(0, {kSlice}).out(16, {kWhole}, DType::I32).run(), "");
  EXPECT_NE(gather().in(0, {kSlice}).run(), "");
  // The slice lies in the result, but not in its place.
  for (int64_t wrong : {0, 3, 5, 8})
    EXPECT_NE(gather().in(wrong, {kSlice}).in(0, {kWhole}).out(0, {kWhole}).run(), "") << wrong;
  EXPECT_NE(gather().in(0, {kSlice}).in(17, {kWhole}).out(16, {kWhole}).run(), "");
  EXPECT_NE(gather().in(0, {kSlice}).in(16, {kSlice}).out(16, {kWhole}).run(), "");

  EXPECT_NE(reduce().in(0, {kWhole}).out(kRank * kSlice, {kSlice}).run(), ""); // in_place is not said
  EXPECT_NE(reduce().attr("in_place", 1).in(0, {kWhole}).out(0, {kSlice}).run(), "");
  EXPECT_NE(reduce().attr("in_place", 1).in(0, {kWhole}).out(16, {kSlice}).run(), "");
  EXPECT_NE(reduce().in(0, {kWhole}, DType::Bool).out(32, {kSlice}, DType::Bool).run(), "");
  EXPECT_NE(reduce().in(0, {kWhole + 1}).out(32, {kSlice}).run(), "");

  EXPECT_NE(sum().in(0, {5}).out(8, {5}).run(), "");
  EXPECT_NE(sum().in(0, {5}).out(0, {4}).run(), "");
  EXPECT_NE(sum().in(0, {5, 1}).out(0, {5, 1}).run(), "");
  EXPECT_NE(Collective("collective_done").in(0, {1}).run(), "");
  EXPECT_EQ(Collective("collective_done").run(), "");
}

TEST(CollectiveKernels, TellThatRanksAreLost) {
  Collective c("all_reduce_start");
  c.recorder.answer = false;
  EXPECT_EQ(c.in(0, {5}).out(0, {5}).run(), "");
  EXPECT_TRUE(c.fault.raised());
  EXPECT_TRUE(c.fault.lostRanks());
}

TEST(CollectiveKernels, OneRankNeedsNoCommunicator) {
  Collective c("reduce_scatter_start");
  c.binding.communicator = nullptr;
  for (int i = 0; i < 4; ++i)
    c.memory[i] = float(i);
  EXPECT_EQ(c.attr("ranks", 1).in(0, {4}).out(16, {4}).run(), "");
  EXPECT_EQ(std::memcmp(c.memory, c.memory + 16, 4 * sizeof(float)), 0);
  EXPECT_NE(c.attr("ranks", 2).run(), "");
}

} // namespace
} // namespace shardc::host
