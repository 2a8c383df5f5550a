// SPDX-License-Identifier: Apache-2.0
// The file of algorithms without a device; every algorithm, and the choice among them, on one.
#include "ir/base/File.h"
#include "ir/ops/Reference.h"
#include "runtime/comm/Local.h"
#include "runtime/cuda/Tuner.h"
#include "tests/cuda/RunCommand.h"
#include "tests/runtime/TestFiles.h"
#include <thread>

using namespace shardc;
using namespace shardc::test;
using cuda::AlgorithmBytes;
using cuda::Tuning;

namespace {

AlgorithmBytes filled(uint8_t value) {
  AlgorithmBytes bytes;
  bytes.fill(value);
  return bytes;
}

TEST(TuningFile, readsWhatItWrites) {
  Tuning tuning;
  tuning.set("a device: 1 x 2x3 = 4", filled(0xab));
  tuning.set("another", filled(0));
  Tuning again = Tuning::parse(tuning.text());
  EXPECT_EQ(again.find("a device: 1 x 2x3 = 4"), filled(0xab));
  EXPECT_EQ(again.find("another"), filled(0));
  EXPECT_EQ(again.find("a third"), std::nullopt);
}

TEST(TuningFile, leavesOutWhatIsDamaged) {
  Tuning tuning;
  tuning.set("good", filled(1));
  const std::string digits(126, '0'), text = tuning.text();
  for (const std::string &line : {"short = " + digits, "long = " + digits + "000", "letters = " + digits + "xy",
                                  " = " + digits + "00", std::string("no algorithm"), std::string("\0\xff", 2)}) {
    Tuning read = Tuning::parse(text + line + "\n");
    EXPECT_EQ(read.text(), text) << line;
  }
  EXPECT_TRUE(Tuning::parse("").empty());
  EXPECT_TRUE(Tuning::parse("some other file\ngood = " + digits + "00\n").empty());
}

TEST(TuningFile, addsToWhatOthersWrote) {
  TemporaryFolder folder;
  const std::string path = folder.path("new/folder/tuning.txt");
  Tuning first, second;
  first.set("a", filled(1));
  first.set("b", filled(2));
  second.set("b", filled(3));
  ASSERT_EQ(llvm::toString(first.mergeInto(path)), "");
  ASSERT_EQ(llvm::toString(second.mergeInto(path)), "");
  Tuning read = Tuning::read(path);
  EXPECT_EQ(read.find("a"), filled(1));
  EXPECT_EQ(read.find("b"), filled(3));
  EXPECT_TRUE(Tuning::read(folder.path("none")).empty());
  EXPECT_NE(llvm::toString(first.mergeInto(path + "/below")), "");
}

TEST(TuningFile, leavesOtherFilesAlone) {
  TemporaryFolder folder;
  Tuning tuning;
  tuning.set("a", filled(1));
  const std::string plan = folder.write("m.plan", "SHARDCPL..."), path = folder.write("empty", "");
  EXPECT_EQ(llvm::toString(tuning.mergeInto(plan)), plan + ": is no tuning file: got other first bytes, wanted "
                                                           "'shardc tuning'\nhint: give --tuning another path, or off");
  EXPECT_EQ(llvm::cantFail(readFile(plan, 100))->getBuffer(), "SHARDCPL...");
  ASSERT_EQ(llvm::toString(tuning.mergeInto(path)), "");
  const std::string older = folder.write("older", "shardc tuning 0\na = 00\n");
  ASSERT_EQ(llvm::toString(tuning.mergeInto(older)), "");
  for (const std::string &file : {path, older})
    EXPECT_EQ(Tuning::read(file).text(), tuning.text());
}

/// A product on device memory of its own, with the host's answer.
class CudaTuning : public testing::Test {
protected:
  static constexpr int64_t kM = 512, kN = 384, kK = 640;
  CudaTuning() {
    problem.m = kM, problem.n = kN, problem.k = kK;
    problem.rowA = kK, problem.columnA = 1, problem.rowB = 1, problem.columnB = kK;
    problem.in = problem.out = DType::BF16;
    problem.addsC = true;
  }
  void SetUp() override {
    SHARDC_NEEDS_DEVICE();
    Tensor values = randomTensor(DType::BF16, {kM * kK}, 1);
    for (auto [memory, count] : {std::pair(&a, kM * kK), std::pair(&b, kN * kK), std::pair(&y, kM * kN),
                                 std::pair(&c, kM * kN), std::pair(&workspace, kProductWorkspace / 2)})
      *memory = std::make_unique<DeviceMemory>(count <= kM * kK ? values.bytes() : nullptr, size_t(count) * 2);
    operands = {a->data(), b->data(), c->data(), y->data()};
    host::Binding binding;
    binding.workspace = workspace->data(), binding.workspaceBytes = kProductWorkspace;
    auto made = cuda::KernelScratch::of(binding, *sharedDevice(), kProductWorkspace);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    scratch = *made;
  }

  std::unique_ptr<cuda::LtProduct> product() {
    auto made = cuda::LtProduct::of(problem, nullptr, *sharedDevice(), "test");
    if (made)
      return std::make_unique<cuda::LtProduct>(std::move(*made));
    ADD_FAILURE() << llvm::toString(made.takeError());
    return nullptr;
  }
  Tensor get(const DeviceMemory &memory, Dims dims) {
    Tensor tensor(DType::BF16, dims);
    memory.get(tensor.mutableData<char>());
    return tensor;
  }
  Tensor run(const cuda::LtProduct &product) {
    EXPECT_EQ(llvm::toString(product.run(operands, workspace->data(), nullptr)), "");
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return get(*y, {kM, kN});
  }
  Tensor byHost() {
    TestCommand command{"matmul", {{"transpose_b", int64_t(1)}}};
    command.in = {get(*a, {kM, kK}), get(*b, {kN, kK}), get(*c, {kM, kN})};
    command.out = {Type(DType::BF16, {kM, kN})};
    command.inPlace = {{0, 2}};
    auto results = runByHost(command);
    EXPECT_TRUE(bool(results));
    return (*results)[0];
  }
  void expectRight(const cuda::LtProduct &product) {
    EXPECT_EQ(compare(run(product), fromDoubles(DType::BF16, {kM, kN}, toDoubles(byHost())), 8e-2), "");
  }

  cuda::Problem problem;
  cuda::Operands operands;
  std::unique_ptr<DeviceMemory> a, b, c, y, workspace;
  cuda::KernelScratch scratch;
};

TEST_F(CudaTuning, everyAlgorithmIsRight) {
  auto made = product();
  ASSERT_TRUE(made);
  auto algorithms = made->algorithms(16);
  ASSERT_TRUE(bool(algorithms)) << llvm::toString(algorithms.takeError());
  EXPECT_GT(algorithms->size(), 1u);
  for (const cublasLtMatmulAlgo_t &algorithm : *algorithms) {
    EXPECT_TRUE(made->takes(algorithm));
    made->use(algorithm);
    expectRight(*made);
    EXPECT_TRUE(run(*made) == run(*made)) << "two runs differ";
  }
  EXPECT_FALSE(made->takes(cublasLtMatmulAlgo_t{{~0ull, ~0ull, ~0ull, ~0ull}}));
}

TEST_F(CudaTuning, theFileDecides) {
  TemporaryFolder folder;
  const std::string path = folder.path("tuning.txt");
  Tensor first;
  for (int time = 0; time < 3; ++time) {
    auto one = product(), other = product();
    ASSERT_TRUE(one && other);
    cuda::Tuner tuner(path, *sharedDevice(), nullptr);
    tuner.add(*one, operands, scratch);
    tuner.add(*other, operands, scratch);
    ASSERT_EQ(llvm::toString(tuner.settle()), "");
    EXPECT_EQ(tuner.hasScribbled(), time == 0);
    expectRight(*one);
    Tensor result = run(*one);
    EXPECT_TRUE(result == run(*other));
    if (time == 0)
      first = result;
    EXPECT_TRUE(result == first);
  }
  EXPECT_FALSE(Tuning::read(path).empty());
}

// Rank 0 times and writes, and reads later; rank 1, whose own file cannot be read or written, is told.
TEST_F(CudaTuning, ranksUseTheFileOfRank0) {
  TemporaryFolder folder;
  const std::string paths[2] = {folder.path("tuning.txt"), folder.path("tuning.txt/below")};
  Tensor first;
  for (int time = 0; time < 2; ++time) {
    auto group = makeLocalGroup(2);
    std::unique_ptr<cuda::LtProduct> products[2] = {product(), product()};
    ASSERT_TRUE(products[0] && products[1]);
    std::string errors[2];
    unsigned timed[2];
    auto rank = [&](int r) {
      cuda::Tuner tuner(paths[r], *sharedDevice(), group[r].get());
      tuner.add(*products[r], operands, scratch);
      errors[r] = llvm::toString(tuner.settle());
      timed[r] = tuner.timed();
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
    EXPECT_EQ(errors[0], "");
    EXPECT_EQ(errors[1], "");
    EXPECT_EQ(timed[0], time == 0 ? 1u : 0u);
    EXPECT_EQ(timed[1], 0u);
    const Tensor results[2] = {run(*products[0]), run(*products[1])};
    if (time == 0)
      first = results[0];
    for (const Tensor &result : results)
      EXPECT_TRUE(result == first);
  }
}

TEST_F(CudaTuning, smallOnesAreNotTimed) {
  TemporaryFolder folder;
  problem.m = 64; // of the memory that holds more
  auto one = product();
  ASSERT_TRUE(one);
  cuda::Tuner tuner(folder.path("tuning.txt"), *sharedDevice(), nullptr);
  tuner.add(*one, operands, scratch);
  ASSERT_EQ(llvm::toString(tuner.settle()), "");
  EXPECT_EQ(tuner.timed(), 0u);
  EXPECT_TRUE(Tuning::read(folder.path("tuning.txt")).empty());
}

TEST_F(CudaTuning, theCacheIsSweptBesideTheOperands) {
  TemporaryFolder folder;
  constexpr size_t kPart = size_t(2) << 20; // more than any of the matrices
  const std::string filled(6 * kPart, 'x');
  DeviceMemory arena(filled.data(), filled.size());
  auto part = [&](int i) { return static_cast<char *>(arena.data()) + i * kPart; };
  operands = {part(1), part(4), part(5), part(0)};
  auto one = product();
  ASSERT_TRUE(one);
  cuda::Tuner tuner(folder.path("tuning.txt"), *sharedDevice(), nullptr, {part(0), filled.size()});
  tuner.add(*one, operands, scratch);
  ASSERT_EQ(llvm::toString(tuner.settle()), "");
  std::string after(filled.size(), 0);
  arena.get(after.data());
  auto held = [&](size_t begin, size_t end) { return llvm::StringRef(after).slice(begin, end); };
  const size_t a = kPart, endOfA = a + 2 * kM * kK, b = 4 * kPart, endOfY = 2 * kM * kN;
  EXPECT_TRUE(held(endOfA, b) == std::string(b - endOfA, 0)) << "the largest part that no operand lies in";
  EXPECT_TRUE(held(endOfY, a) == std::string(a - endOfY, 'x')) << "another part";
  for (size_t begin : {size_t(0), a, b, 5 * kPart})
    EXPECT_TRUE(held(begin, begin + 4096) != std::string(4096, 0)) << begin;
}

TEST_F(CudaTuning, withoutAFileNothingIsTimed) {
  auto one = product();
  ASSERT_TRUE(one);
  cuda::Tuner tuner("", *sharedDevice(), nullptr);
  tuner.add(*one, operands, scratch);
  ASSERT_EQ(llvm::toString(tuner.settle()), "");
  EXPECT_FALSE(tuner.hasScribbled());
  expectRight(*one);
}

} // namespace
