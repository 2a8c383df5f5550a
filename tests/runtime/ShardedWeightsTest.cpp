// SPDX-License-Identifier: Apache-2.0
// Whatever a plan is cut into, weights are loaded, initialised and saved as with one rank.
#include "FakeExecutor.h"
#include "TestFiles.h"
#include "ir/base/FileHash.h"
#include "ir/base/Half.h"
#include "runtime/InitWeights.h"
#include "runtime/Ranks.h"
#include "runtime/Safetensors.h"
#include "runtime/SaveWeights.h"
#include "runtime/Weights.h"
#include "runtime/comm/Local.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr int64_t kColumns = 43,
                  kRows = 67; ///< with the vector it fills the bucket but for its end
constexpr int64_t kMatrix = kColumns * kRows, kVector = kElements - kMatrix - 100;

struct ShardedWeights : testing::Test {
  TemporaryFolder folder;
  WeightsOptions options;

  plan::Plan planOf(Cut cut) {
    plan::Plan plan = regressionPlan(2, cut);
    plan.mutable_parameters(0)->set_dims(0, kRows);
    plan.mutable_parameters(0)->set_dims(1, kColumns);
    plan.mutable_parameters(1)->set_offset(kMatrix + 10); // a gap before it
    plan.mutable_parameters(1)->set_dims(0, kVector);
    return plan;
  }
  /// Loads on all ranks and saves again; the file's bytes.
  std::string roundTrip(const plan::Plan &plan, bool onDevice = false) {
    auto weights = StartingWeights::open(plan, options);
    if (!weights)
      return messageOf(weights.takeError());
    auto group = makeLocalGroup(plan.ranks());
    std::string path = folder.path("saved");
    std::string message = messageOf(runRanks(group, [&](Communicator &c) {
      FakeExecutor executor(plan, &c);
      executor.onDevice = onDevice;
      llvm::cantFail(weights->fill(executor));
      return saveParameters(plan, executor, c, path);
    }));
    return message == "success" ? (*llvm::MemoryBuffer::getFile(path))->getBuffer().str() : message;
  }
  static std::vector<Cut> cuts() {
    std::vector<Cut> all;
    for (unsigned ranks : {1, 2, 3, 5})
      for (unsigned zero : {0, 1, 2, 3})
        all.push_back({ranks, ranks == 1 ? 0 : zero, 1});
    return all;
  }
};

TEST_F(ShardedWeights, AreSavedAsTheyWereLoaded) {
  std::vector<float> values(kMatrix + kVector);
  std::iota(values.begin(), values.end(), 1.f);
  options.file = folder.path("given");
  llvm::cantFail(
      writeSafetensors(options.file, {{"w", DType::F32, {kRows, kColumns}, values.data()},
                                      {"b.bias", DType::F32, {kVector}, values.data() + kMatrix}}));
  std::string given = (*llvm::MemoryBuffer::getFile(options.file))->getBuffer().str();
  for (Cut cut : cuts())
    EXPECT_TRUE(roundTrip(planOf(cut)) == given) << cut.ranks << " ranks, stage " << cut.zero;
}

// A transposed matrix, of the same and of another type, is cut in the middle of its rows.
TEST_F(ShardedWeights, AreTransposedInParts) {
  for (DType type : {DType::F32, DType::F64}) {
    std::string bytes;
    for (int64_t i = 0; i < kMatrix;
         ++i) { // element i of the file is row i % kRows, column i / kRows
      double value = double(i % kRows * kColumns + i / kRows);
      float single = float(value);
      const void *from = type == DType::F32 ? static_cast<void *>(&single) : &value;
      bytes.append(static_cast<const char *>(from), byteSize(type));
    }
    folder.write("model.onnx", bytes);
    options.planPath = folder.path("m.plan");
    for (Cut cut : cuts()) {
      plan::Plan plan = planOf(cut);
      plan.mutable_model()->set_path("model.onnx");
      plan.mutable_model()->set_hash(fileHash(bytes));
      auto *source = plan.mutable_parameters(0)->mutable_source();
      source->set_kind(plan::ValueSource::FILE);
      source->set_file("model.onnx");
      source->set_length(bytes.size());
      source->set_dtype(unsigned(type));
      source->set_transposed(true);
      plan.mutable_parameters(1)->mutable_source()->set_kind(plan::ValueSource::ZERO);
      std::string saved = roundTrip(plan);
      ASSERT_GT(saved.size(), size_t(kMatrix + kVector) * 4) << saved;
      std::vector<float> got(kMatrix + kVector), want(kMatrix);
      std::memcpy(got.data(), saved.data() + saved.size() - got.size() * 4, got.size() * 4);
      std::iota(want.begin(), want.end(), 0.f);
      want.resize(kMatrix + kVector);
      EXPECT_TRUE(got == want) << cut.ranks << " ranks, stage " << cut.zero;
    }
  }
}

TEST_F(ShardedWeights, AreInitialisedAlike) {
  options.deviation = 0.5;
  options.seed = 3;
  std::string one = roundTrip(planOf({}));
  ASSERT_GT(one.size(), size_t(kMatrix + kVector) * 4) << one;
  for (Cut cut : cuts())
    EXPECT_TRUE(roundTrip(planOf(cut)) == one) << cut.ranks << " ranks, stage " << cut.zero;
}

TEST_F(ShardedWeights, AreTheSameOnADevice) {
  options.deviation = 0.5;
  for (Cut cut : cuts()) {
    std::string host = roundTrip(planOf(cut));
    ASSERT_GT(host.size(), size_t(kMatrix + kVector) * 4) << host;
    EXPECT_TRUE(roundTrip(planOf(cut), /*onDevice=*/true) == host)
        << cut.ranks << " ranks, stage " << cut.zero;
  }
}

// 16-bit parameters have the values of their master, whichever part of either a rank holds.
TEST_F(ShardedWeights, AreRoundedFromTheMaster) {
  options.deviation = 0.5;
  for (bool onDevice : {false, true})
    for (Cut cut : cuts()) {
      plan::Plan plan = planOf(cut);
      const int64_t slice = kElements / cut.ranks, masters = cut.zero > 0 ? slice : kElements,
                    halves = cut.zero == 3 ? slice : kElements;
      plan.mutable_buckets(0)->set_dtype(unsigned(DType::BF16));
      plan.mutable_buckets(0)->set_master_buffer(plan.buffers_size());
      plan.add_buffers()->set_bytes(masters * 4);
      plan.mutable_buffers(2)->set_bytes(halves * 2);
      std::vector<float> wanted(kElements);
      for (int i = 0; i < plan.parameters_size(); ++i) {
        const plan::Parameter &parameter = plan.parameters(i);
        initialize(parameter, i, *options.deviation, options.seed, 0, i == 0 ? kMatrix : kVector,
                   wanted.data() + parameter.offset(), DType::F32);
      }
      auto weights = StartingWeights::open(plan, options);
      ASSERT_TRUE(bool(weights)) << messageOf(weights.takeError());
      for (unsigned rank = 0; rank < cut.ranks; ++rank) {
        auto group = makeLocalGroup(cut.ranks);
        FakeExecutor executor(plan, group[rank].get());
        executor.onDevice = onDevice;
        llvm::cantFail(weights->fill(executor));
        std::vector<float> master(masters);
        std::vector<uint16_t> half(halves);
        llvm::cantFail(executor.read(plan.buckets(0).master_buffer(), 0, master.data(), masters * 4));
        llvm::cantFail(executor.read(2, 0, half.data(), halves * 2));
        const float *own = wanted.data() + rank * slice;
        EXPECT_TRUE(std::equal(master.begin(), master.end(), masters == kElements ? wanted.data() : own));
        own = halves == kElements ? wanted.data() : own;
        for (int64_t i = 0; i < halves; ++i)
          ASSERT_EQ(half[i], floatToBFloat(own[i])) << cut.ranks << " ranks, stage " << cut.zero << ", element " << i;
      }
    }
}

// Gradients: whole at stage 0; at stage 1 only slice r of the whole buffer is right; from 2 on the
// buffer is slice r.
TEST_F(ShardedWeights, HaveGradientsOfAllRanks) {
  for (bool onDevice : {false, true})
    for (Cut cut : cuts()) {
      plan::Plan plan = planOf(cut);
      plan.mutable_parameters(1)->set_trainable(true);
      auto group = makeLocalGroup(cut.ranks);
      std::string path = folder.path("g");
      int64_t slice = kElements / cut.ranks;
      llvm::cantFail(runRanks(group, [&](Communicator &c) {
        FakeExecutor executor(plan, &c);
        auto *gradient = static_cast<float *>(executor.buffer(3));
        int64_t begin = cut.zero == 0 ? 0 : c.rank() * slice,
                end = cut.zero == 0 ? kElements : begin + slice;
        if (cut.zero < 2)
          std::fill_n(gradient, kElements, -7.f);
        for (int64_t i = begin; i < end; ++i)
          gradient[cut.zero < 2 ? i : i - begin] = 4.f * float(i);
        executor.onDevice = onDevice;
        return saveGradients(plan, executor, c, path, 0.25);
      }));
      auto file = llvm::cantFail(ArrayFile::open(path));
      std::vector<float> got(kMatrix), want(kMatrix);
      std::memcpy(got.data(), llvm::cantFail(file->data(*file->find("w"))), kMatrix * 4);
      std::iota(want.begin(), want.end(), 0.f);
      EXPECT_TRUE(got == want) << cut.ranks << " ranks, stage " << cut.zero;
      got.resize(kVector), want.resize(kVector);
      std::memcpy(got.data(), llvm::cantFail(file->data(*file->find("b.bias"))), kVector * 4);
      std::iota(want.begin(), want.end(), float(kMatrix + 10));
      EXPECT_TRUE(got == want) << cut.ranks << " ranks, stage " << cut.zero;
    }
}

// A slice that is larger than what ranks send at a time.
TEST_F(ShardedWeights, PassInPieces) {
  plan::Plan plan = planOf({2, 3, 1});
  constexpr int64_t kMany = 3 << 20;
  plan.mutable_buckets(0)->set_elements(kMany);
  plan.mutable_buffers(2)->set_bytes(kMany / 2 * 4);
  plan.mutable_parameters(1)->set_dims(0, kMany - kMatrix - 10);
  plan.mutable_parameters(1)->set_name("scale");
  options.deviation = 1;
  std::string two = roundTrip(plan);
  plan.set_ranks(1);
  plan.mutable_buffers(2)->set_bytes(kMany * 4);
  EXPECT_TRUE(two == roundTrip(plan));
  EXPECT_GT(two.size(), size_t(kMany - 10) * 4);
}

// The disk of rank 0 is full: all ranks hear of it.
TEST_F(ShardedWeights, AreNotSavedHalf) {
  plan::Plan plan = planOf({3, 3, 1});
  auto group = makeLocalGroup(3);
  std::string message = messageOf(runRanks(group, [&](Communicator &c) {
    FakeExecutor executor(plan, &c);
    llvm::Error error = saveParameters(plan, executor, c, folder.path("none/w"));
    if (!error)
      error = waitForAll(c);
    return error;
  }));
  EXPECT_EQ(message, "none/w: cannot be written: No such file or directory");
}

} // namespace
