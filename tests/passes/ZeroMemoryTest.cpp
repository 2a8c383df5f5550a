// SPDX-License-Identifier: Apache-2.0
// What the stages promise, read from plans: bytes a parameter costs, and bytes on the wire.
#include "ir/plan/Check.h"
#include "tests/passes/CompileText.h"
#include "tests/passes/SmallModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <gtest/gtest.h>
#include <map>

using namespace llvm;

namespace shardc {
namespace {

plan::Plan compiled(unsigned ranks, unsigned zero, unsigned accumulate, Precision precision) {
  CompileOptions options;
  options.ranks = ranks;
  options.zero = zero;
  options.accumulate = accumulate;
  options.precision = precision;
  return compileText(kSmallModel, options);
}

template <typename Body> void eachPlan(Body body, Precision precision = Precision::Fp32) {
  for (unsigned ranks : {1, 2, 3, 5, 8, 64})
    for (unsigned zero = 0; zero <= 3; ++zero)
      for (unsigned accumulate : {1, 2, 4}) {
        SCOPED_TRACE("ranks " + std::to_string(ranks) + " stage " + std::to_string(zero) + " accumulate " + std::to_string(accumulate));
        body(compiled(ranks, zero, accumulate, precision));
      }
}

/// Elements of a bucket by its parameters: each begins at a multiple of 64, the whole is padded to ranks x 64.
uint64_t paddedElements(const plan::Plan &plan, int bucket) {
  uint64_t elements = 0;
  for (const plan::Parameter &p : plan.parameters())
    if (int(p.bucket()) == bucket) {
      uint64_t own = 1;
      for (int64_t d : p.dims())
        own *= uint64_t(d);
      elements += alignTo(own, 64);
    }
  return alignTo(elements, uint64_t(plan.ranks()) * 64);
}

bool isTrained(const plan::Plan &plan, int bucket) {
  return any_of(plan.parameters(), [&](const plan::Parameter &p) { return int(p.bucket()) == bucket && p.trainable(); });
}

TEST(ZeroMemory, BytesOfParametersGradientsAndState) {
  eachPlan([](const plan::Plan &plan) {
    const uint64_t N = plan.ranks(), stage = plan.zero();
    uint64_t all = 0, trained = 0; // elements
    for (int b = 0; b < plan.buckets_size(); ++b) {
      EXPECT_EQ(plan.buckets(b).elements(), paddedElements(plan, b));
      all += paddedElements(plan, b);
      trained += isTrained(plan, b) ? paddedElements(plan, b) : 0;
    }
    std::map<int, uint64_t> bytes;
    for (const plan::Buffer &buffer : plan.buffers())
      bytes[buffer.kind()] += buffer.bytes();
    EXPECT_EQ(bytes[plan::PARAMETER], 4 * all / (stage >= 3 ? N : 1));
    EXPECT_EQ(bytes[plan::GRADIENT], 4 * trained / (stage >= 2 ? N : 1));
    EXPECT_EQ(bytes[plan::OPTIMIZER_STATE], 8 * trained / (stage >= 1 ? N : 1));
    if (N == 1 || (stage == 0)) { // nothing is gathered or in flight
      EXPECT_EQ(bytes[plan::COMMUNICATION], 0u);
    }
  });
}

// bf16: 2 + 2 + 12 bytes at stage 0; at stage 3 nothing but slices: 2 + 12, gradients of more micro-steps are f32.
TEST(ZeroMemory, BytesIn16Bits) {
  eachPlan(
      [](const plan::Plan &plan) {
        const uint64_t N = plan.ranks(), stage = plan.zero(), gradient = plan.accumulate() > 1 ? 4 : 2;
        uint64_t all = 0, trained = 0; // elements
        for (int b = 0; b < plan.buckets_size(); ++b) {
          all += paddedElements(plan, b);
          trained += isTrained(plan, b) ? paddedElements(plan, b) : 0;
        }
        std::map<int, uint64_t> bytes;
        for (const plan::Buffer &buffer : plan.buffers())
          bytes[buffer.kind()] += buffer.bytes();
        bool cut = N > 1 && stage >= 3;
        EXPECT_EQ(bytes[plan::PARAMETER], cut ? 2 * (all - trained) / N : 2 * all);
        EXPECT_EQ(bytes[plan::GRADIENT], gradient * trained / (stage >= 2 ? N : 1));
        EXPECT_EQ(bytes[plan::OPTIMIZER_STATE], 12 * trained / (stage >= 1 ? N : 1));
        // What travels is 16-bit; only whole f32 sums of micro-steps are not.
        for (const plan::Program &program : plan.programs())
          for (const plan::Command &c : program.commands())
            if (c.communicator() != 0 && c.layer() != 0) {
              bool sums = stage <= 1 && plan.accumulate() > 1 && c.kernel() != "all_gather_start";
              EXPECT_EQ(DType(c.outputs(0).dtype()), sums ? DType::F32 : DType::BF16) << c.kernel();
            }
        EXPECT_EQ(toString(checkPlan(plan)), "");
      },
      Precision::Bf16);
}

/// Bytes that a rank sends for one collective.
uint64_t wireBytes(const plan::Plan &plan, const plan::Command &command) {
  uint64_t N = plan.ranks(), whole = 4;
  const plan::Ref &ref = command.kernel() == "all_gather_start" ? command.outputs(0) : command.inputs(0);
  for (int64_t d : ref.dims())
    whole *= uint64_t(d);
  return whole / N * (N - 1) * (command.kernel() == "all_reduce_start" ? 2 : 1);
}

/// In `train`-like programs: how many runs of uses each bucket has, by what commands read the gathered buffers.
std::map<std::string, unsigned> runsOfUses(const plan::Plan &plan, const plan::Program &program) {
  std::map<std::string, unsigned> runs;
  std::string current;
  for (const plan::Command &command : program.commands()) {
    if (command.communicator())
      continue;
    for (const plan::Ref &ref : command.inputs()) {
      const plan::Buffer &buffer = plan.buffers(ref.buffer());
      const std::string &layer = plan.strings(buffer.layer());
      bool gathered = StringRef(buffer.name()).contains(".gathered");
      if (ref.absent() || !gathered || layer == current)
        continue;
      current = layer;
      ++runs[layer];
    }
  }
  return runs;
}

TEST(ZeroMemory, BytesOnTheWire) {
  eachPlan([](const plan::Plan &plan) {
    const uint64_t N = plan.ranks(), K = plan.accumulate(), stage = plan.zero();
    std::map<std::string, uint64_t> sent;
    uint64_t scalars = 0;
    std::map<std::string, unsigned> runs;
    for (const plan::Program &program : plan.programs()) {
      if (program.name() == "eval")
        continue;
      if (StringRef(program.name()).starts_with("train"))
        runs = runsOfUses(plan, program);
      for (const plan::Command &command : program.commands())
        if (command.communicator()) {
          uint64_t bytes = runsPerStep(plan, program) * wireBytes(plan, command);
          command.layer() ? sent[plan.strings(command.layer())] += bytes : scalars += bytes;
        }
    }
    for (int b = 0; b < plan.buckets_size(); ++b) {
      uint64_t share = 4 * paddedElements(plan, b) / N * (N - 1), want = 0; // of a gather or a reduce-scatter
      bool trained = isTrained(plan, b);
      const std::string &name = plan.buckets(b).name();
      bool twins = count_if(plan.buckets(), [&](const plan::Bucket &o) { return o.name() == name; }) > 1;
      if (twins)
        continue; // trained and frozen parts of one layer: counted below
      if (stage == 0)
        want = trained ? 2 * share : 0;
      if (stage == 1)
        want = trained ? 2 * share : 0;
      if (stage == 2)
        want = trained ? (K + 1) * share : 0;
      if (stage == 3)
        want = K * share * ((N > 1 ? runs[name] : 0) + trained);
      EXPECT_EQ(sent[name], want) << name;
    }
    EXPECT_LE(scalars, N > 1 ? 8u * 2 * plan.buckets_size() + 16 : 0);
  });
}

TEST(ZeroMemory, EveryGradientIsBornInItsBucket) {
  eachPlan([](const plan::Plan &plan) {
    for (const plan::Program &program : plan.programs())
      for (const plan::Command &command : program.commands())
        EXPECT_NE(plan.strings(command.place()), "copy gradient");
  });
}

} // namespace
} // namespace shardc
