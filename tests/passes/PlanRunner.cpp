// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/PlanRunner.h"
#include "ir/plan/Scalars.h"
#include "runtime/Executor.h"
#include "runtime/comm/Local.h"
#include "runtime/host/Parallel.h"
#include "llvm/Support/xxhash.h"
#include <cstring>
#include <thread>

using namespace llvm;

namespace shardc {
namespace {

/// A number that name and index alone decide.
uint64_t draw(StringRef name, uint64_t index) {
  uint64_t x = xxh3_64bits(name) + index * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return (x ^ (x >> 27)) * 0x94d049bb133111ebu >> 11;
}

int64_t count(const google::protobuf::RepeatedField<int64_t> &dims) {
  int64_t n = 1;
  for (int64_t dim : dims)
    n *= dim;
  return n;
}

class Rank {
public:
  Rank(const plan::Plan &plan, Executor &executor) : plan_(plan), executor_(executor) {}

  bool run() {
    fillGarbage(/*persistent=*/true);
    fillParameters();
    fillScalars();
    for (uint64_t step = 0; step < 2; ++step) {
      for (uint64_t k = 0; k < plan_.accumulate(); ++k)
        if (!runProgram(nameOf(k), step * plan_.accumulate() + k))
          return false;
      if (!runProgram("update", 0) || !runProgram("eval", 100 + step))
        return false;
      fillGarbage(/*persistent=*/false);
    }
    for (const plan::Parameter &p : plan_.parameters())
      eachElement(p, [&](char *at, int64_t) { result_.append(at, 4); });
    return true;
  }
  const std::string &result() const { return result_; }

private:
  StringRef nameOf(uint64_t k) const {
    return plan_.accumulate() == 1 ? "train" : k == 0 ? "train_first" : k + 1 == plan_.accumulate() ? "train_last" : "train_middle";
  }
  char *bytes(uint32_t buffer) { return static_cast<char *>(executor_.buffer(buffer)); }

  /// NaN in every float type, where nothing is promised; zeros in optimizer state.
  void fillGarbage(bool persistent) {
    for (int i = 0; i < plan_.buffers_size(); ++i) {
      const plan::Buffer &b = plan_.buffers(i);
      bool kept = b.kind() == plan::CONSTANT || b.kind() == plan::OPTIMIZER_STATE || b.kind() == plan::PARAMETER;
      if (!kept && b.persistent() <= persistent && uint32_t(i) != plan_.scalars_buffer())
        std::memset(bytes(uint32_t(i)), 0xff, b.bytes());
    }
  }

  /// Calls `visit(address, index)` for the elements of a parameter that this rank has.
  template <typename Visit> void eachElement(const plan::Parameter &p, Visit visit) {
    const plan::Bucket &bucket = plan_.buckets(int(p.bucket()));
    int64_t own = int64_t(plan_.buffers(bucket.parameter_buffer()).bytes()) / 4;
    int64_t first = own < int64_t(bucket.elements()) ? own * executor_.rank() : 0;
    for (int64_t i = 0, n = count(p.dims()); i < n; ++i)
      if (int64_t at = int64_t(p.offset()) + i - first; at >= 0 && at < own)
        visit(bytes(uint32_t(bucket.parameter_buffer())) + at * 4, i);
  }
  void fillParameters() {
    for (const plan::Parameter &p : plan_.parameters())
      eachElement(p, [&](char *at, int64_t i) {
        float value = float(draw(p.name(), uint64_t(i)) % 2001) / 2000 - 0.5f;
        std::memcpy(at, &value, 4);
      });
  }

  void fillScalars() {
    double *s = executor_.scalars();
    std::memset(s, 0, kNumScalars * sizeof(double));
    for (auto [slot, value] : {std::pair(kLearningRate, 0.1), {kBeta1, 0.9}, {kBeta2, 0.99}, {kEpsilon, 1e-8}, {kWeightDecay, 0.01},
                               {kBiasCorrection1, 0.1}, {kBiasCorrection2, 0.01}, {kMaxGradNorm, 1.0}, {kSeed, 7.0}})
      s[slot] = value;
    s[kRank] = executor_.rank();
  }

  void fillInputs(uint64_t batch) {
    for (const plan::Input &input : plan_.inputs()) {
      char *at = bytes(input.buffer());
      for (int64_t i = 0, n = count(input.dims()); i < n; ++i) {
        uint64_t random = draw(input.name(), (batch * plan_.ranks() + executor_.rank()) * 1000 + uint64_t(i));
        int64_t integer = input.low() < input.high() ? input.low() + int64_t(random % uint64_t(input.high() - input.low())) : i % 3 < 2;
        float real = float(random % 1000) / 1000;
        switch (DType(input.dtype())) {
        case DType::I64: std::memcpy(at + 8 * i, &integer, 8); break;
        case DType::I32: at[4 * i] = char(integer), std::memset(at + 4 * i + 1, 0, 3); break;
        case DType::F32: std::memcpy(at + 4 * i, &real, 4); break;
        default: at[i] = char(integer); break;
        }
      }
    }
  }

  bool runProgram(StringRef name, uint64_t batch) {
    int index = executor_.program(name);
    if (index < 0)
      return false;
    if (name != "update")
      fillInputs(batch);
    executor_.scalars()[kShardIndex] = double(batch * plan_.ranks() + executor_.rank());
    if (Error error = executor_.run(index)) {
      consumeError(std::move(error));
      return false;
    }
    for (const plan::Output &output : plan_.outputs())
      if (output.program() == name)
        result_ += output.name() + std::string(static_cast<char *>(executor_.at(output.ref())), 4);
    return true;
  }

  const plan::Plan &plan_;
  Executor &executor_;
  std::string result_;
};

} // namespace

RunResult runPlan(const plan::Plan &plan, const RunOptions &options) {
  auto group = makeLocalGroup(plan.ranks());
  std::vector<std::unique_ptr<Executor>> executors;
  for (unsigned r = 0; r < plan.ranks(); ++r) {
    auto executor = Executor::create(plan, {.communicator = plan.ranks() > 1 ? group[r].get() : nullptr,
                                            .disjoint = options.disjoint,
                                            .delaySeed = options.delaySeed ? options.delaySeed + r : 0});
    if (!executor) {
      consumeError(executor.takeError());
      return {};
    }
    executors.push_back(std::move(*executor));
  }
  std::vector<std::string> results(plan.ranks());
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < plan.ranks(); ++r)
    threads.emplace_back([&, r] {
      host::useThreads(1);
      Rank rank(plan, *executors[r]);
      if (rank.run())
        results[r] = rank.result();
      else
        group[r]->abort("rank " + std::to_string(r) + " failed");
    });
  for (std::thread &thread : threads)
    thread.join();
  RunResult result{.bound = true, .bytes = ""};
  for (const std::string &bytes : results) {
    if (bytes.empty())
      return {.bound = true, .bytes = ""};
    result.bytes += bytes;
  }
  return result;
}

} // namespace shardc
