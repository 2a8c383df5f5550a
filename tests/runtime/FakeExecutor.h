// SPDX-License-Identifier: Apache-2.0
// A plan and an executor without kernels: linear regression y = w x with SGD, written out by hand,
// to test what is around a step. Any number of ranks, micro-steps and all ZeRO stages.
#pragma once

#include "ir/base/Error.h"
#include "ir/plan/Scalars.h"
#include "runtime/Executor.h"
#include "runtime/comm/Communicator.h"
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace shardc::test {

constexpr int64_t kElements = 64 * 60; ///< of the bucket: 1, 2, 3, 4 and 5 ranks divide them

/// How a plan is cut.
struct Cut {
  unsigned ranks = 1, zero = 0, accumulate = 1;
};

/// Inputs x f32[batch,2] and ids i64[batch] (added to the target; in [0, 10) or -1: the row does
/// not count). loss_sum = sum (w x - ids)^2, one bucket of f32 with parameters "w" [1,2] at 0
/// and "b.bias" [1] (frozen at 2).
inline plan::Plan regressionPlan(int64_t batch, Cut cut = {}) {
  plan::Plan plan;
  plan.set_ranks(cut.ranks);
  plan.set_zero(cut.zero);
  plan.set_batch(batch);
  plan.set_accumulate(cut.accumulate);
  auto *x = plan.add_inputs();
  x->set_name("x");
  x->set_dtype(unsigned(DType::F32));
  x->add_dims(batch);
  x->add_dims(2);
  x->set_buffer(0);
  auto *ids = plan.add_inputs();
  ids->set_name("ids");
  ids->set_dtype(unsigned(DType::I64));
  ids->add_dims(batch);
  ids->set_buffer(1);
  ids->set_low(0);
  ids->set_high(10);
  ids->set_ignore(-1);
  ids->set_has_ignore(true);
  auto *bucket = plan.add_buckets();
  bucket->set_elements(kElements);
  bucket->set_parameter_buffer(2);
  bucket->set_gradient_buffer(3);
  const int64_t whole = kElements * 4, slice = whole / cut.ranks;
  for (int64_t bytes : {batch * 8, batch * 8, cut.zero == 3 ? slice : whole, cut.zero >= 2 ? slice : whole, int64_t(64)})
    plan.add_buffers()->set_bytes(bytes);
  auto addParameter = [&](const char *name, std::initializer_list<int64_t> dims, uint64_t offset,
                          bool trainable) {
    auto *p = plan.add_parameters();
    p->set_name(name);
    for (int64_t dim : dims)
      p->add_dims(dim);
    p->set_offset(offset);
    p->set_trainable(trainable);
  };
  addParameter("w", {1, 2}, 0, true);
  addParameter("b.bias", {1}, 2, false);
  auto addOutput = [&](const char *program, const char *name, DType dtype, uint64_t offset) {
    auto *o = plan.add_outputs();
    o->set_program(program);
    o->set_name(name);
    o->mutable_ref()->set_buffer(4);
    o->mutable_ref()->set_dtype(unsigned(dtype));
    o->mutable_ref()->set_offset(offset);
  };
  for (const char *program : {cut.accumulate > 1 ? "train_last" : "train", "eval"}) {
    addOutput(program, "loss_sum", DType::F64, 0);
    addOutput(program, "loss_count", DType::I64, 8);
    addOutput(program, "correct", DType::I32, 16);
  }
  addOutput("update", "grad_norm", DType::F32, 24);
  for (const char *program : {"train", "train_first", "train_middle", "train_last", "update", "eval"})
    plan.add_programs()->set_name(program);
  return plan;
}

/// Gradients are summed over ranks at the end of `train` and `train_last`, on channel 1, in f64: so that losses are nearly
/// those of one rank. Memory has the plan's sizes; a gradient that a stage does not promise is garbage.
class FakeExecutor : public Executor {
public:
  enum Program { kTrain, kFirst, kMiddle, kLast, kUpdate, kEval, kPrograms };

  explicit FakeExecutor(const plan::Plan &plan, Communicator *communicator = nullptr)
      : plan_(plan), communicator_(communicator) {
    for (const plan::Buffer &buffer : plan.buffers())
      memory_.emplace_back((buffer.bytes() + 7) / 8);
  }

  void *buffer(uint32_t index) override { return onDevice ? nullptr : memory_[index].data(); }
  llvm::Error write(uint32_t index, uint64_t offset, const void *from, uint64_t bytes) override {
    if (deviceError)
      return userError("cudaMemcpy: broken", "", Exit::Fault);
    std::memcpy(inside(index, offset, bytes), from, bytes);
    return llvm::Error::success();
  }
  llvm::Error read(uint32_t index, uint64_t offset, void *to, uint64_t bytes) override {
    if (deviceError)
      return userError("cudaMemcpy: broken", "", Exit::Fault);
    std::memcpy(to, inside(index, offset, bytes), bytes);
    return llvm::Error::success();
  }
  double *scalars() override { return scalars_; }
  unsigned rank() const override { return communicator_ ? communicator_->rank() : 0; }
  int program(llvm::StringRef name) const override {
    for (int i = 0; i < plan_.programs_size(); ++i)
      if (plan_.programs(i).name() == name)
        return i;
    return -1;
  }

  llvm::Error run(int program) override {
    ++runs[program];
    if (program == kUpdate)
      return update();
    if (updates + 1 == failAtStep) {
      if (communicator_)
        communicator_->abort("rank " + std::to_string(rank()) + ": l0/MatMul: broken");
      return userError("l0/MatMul: broken");
    }
    if (program == kTrain || program == kFirst || program == kEval)
      std::fill_n(totals_, 5, 0);
    double w[2];
    if (llvm::Error error = gather(w))
      return error;
    addRows(w);
    if (updates + 1 == nanAtStep)
      totals_[0] = std::numeric_limits<double>::quiet_NaN();
    if (program == kTrain || program == kLast)
      if (llvm::Error error = reduce())
        return error;
    if (program != kFirst && program != kMiddle)
      leaveResults();
    return llvm::Error::success();
  }

  double peakFlops() const override { return peak; }

  double peak = 0;
  bool onDevice = false;    ///< its memory can only be read and written
  bool deviceError = false; ///< each of which fails
  int64_t updates = 0, nanAtStep = -1, failAtStep = -1;
  int64_t runs[kPrograms] = {}; ///< how often each program ran

private:
  char *inside(uint32_t index, uint64_t offset, uint64_t bytes) {
    uint64_t size = plan_.buffers(index).bytes();
    assert(offset <= size && bytes <= size - offset && "outside the buffer");
    return reinterpret_cast<char *>(memory_[index].data()) + offset;
  }
  template <typename T> T *at(uint32_t index, int64_t element = 0) {
    return reinterpret_cast<T *>(memory_[index].data()) + element;
  }
  unsigned ranks() const { return communicator_ ? communicator_->size() : 1; }
  bool hasSlice(uint32_t buffer) const { return int64_t(plan_.buffers(buffer).bytes()) < kElements * 4; }
  bool ownsStart() const { return rank() == 0; } ///< "w" lies in slice 0
  llvm::Error sum(double *values, int n) {
    if (communicator_ && !communicator_->allReduce(/*channel=*/1, values, n, DType::F64))
      return userError(communicator_->cause());
    return llvm::Error::success();
  }

  llvm::Error gather(double *w) {
    bool here = !hasSlice(2) || ownsStart();
    w[0] = here ? *at<float>(2, 0) : 0;
    w[1] = here ? *at<float>(2, 1) : 0;
    return hasSlice(2) ? sum(w, 2) : llvm::Error::success();
  }

  void addRows(const double *w) {
    auto *x = at<float>(0);
    auto *ids = at<int64_t>(1);
    for (int64_t row = 0; row < int64_t(plan_.batch()); ++row) {
      if (ids[row] == -1)
        continue;
      double error = w[0] * x[2 * row] + w[1] * x[2 * row + 1] - ids[row];
      totals_[0] += error * error;
      totals_[1] += 1;
      totals_[2] += 1;
      for (int i = 0; i < 2; ++i)
        totals_[3 + i] += 2 * error * x[2 * row + i];
    }
  }

  llvm::Error reduce() {
    if (llvm::Error error = sum(totals_, 5))
      return error;
    bool valid = plan_.zero() == 0 || ownsStart();
    for (int i = 0; i < 2; ++i)
      *at<float>(3, i) = valid ? totals_[3 + i] : 12345;
    return llvm::Error::success();
  }

  void leaveResults() {
    *at<double>(4) = totals_[0];
    *at<int64_t>(4, 1) = int64_t(totals_[1]);
    *at<int32_t>(4, 4) = int32_t(totals_[2]);
  }

  llvm::Error update() {
    double norm = std::hypot(totals_[3] / totals_[1], totals_[4] / totals_[1]);
    *at<float>(4, 6) = float(norm);
    if (!hasSlice(2) || ownsStart())
      for (int i = 0; i < 2; ++i)
        *at<float>(2, i) -= scalars_[kLearningRate] * totals_[3 + i] / totals_[1];
    ++updates;
    return llvm::Error::success();
  }

  const plan::Plan &plan_;
  Communicator *communicator_;
  std::vector<std::vector<double>> memory_; ///< by buffer
  double scalars_[kNumScalars] = {};
  double totals_[5] = {}; ///< loss, count, correct, gradient
};

} // namespace shardc::test
