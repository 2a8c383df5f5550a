// SPDX-License-Identifier: Apache-2.0
// A plan and an executor without kernels: linear regression y = w x with SGD, written out by hand,
// to test what is around a step.
#pragma once

#include "ir/plan/Scalars.h"
#include "runtime/Executor.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace shardc::test {

/// Inputs x f32[batch,2] and ids i64[batch] (added to the target; in [0, 10) or -1: the row does
/// not count). loss_sum = sum (w x - ids)^2, one bucket of f32[64] with parameters "w" [1,2] at 0
/// and "b.bias" [1] (frozen at 2).
inline plan::Plan regressionPlan(int64_t batch) {
  plan::Plan plan;
  plan.set_ranks(1);
  plan.set_batch(batch);
  plan.set_accumulate(1);
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
  bucket->set_elements(64);
  bucket->set_parameter_buffer(2);
  bucket->set_gradient_buffer(3);
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
  for (const char *program : {"train", "eval"}) {
    addOutput(program, "loss_sum", DType::F64, 0);
    addOutput(program, "loss_count", DType::I64, 8);
    addOutput(program, "correct", DType::I32, 16);
  }
  addOutput("update", "grad_norm", DType::F32, 24);
  return plan;
}

class FakeExecutor : public Executor {
public:
  explicit FakeExecutor(int64_t batch) : batch_(batch) {}

  void *buffer(uint32_t index) override { return memory_[index]; }
  double *scalars() override { return scalars_; }
  unsigned rank() const override { return 0; }
  int program(llvm::StringRef name) const override {
    return name == "train" ? 0 : name == "update" ? 1 : name == "eval" ? 2 : -1;
  }
  llvm::Error run(int program) override {
    auto *x = reinterpret_cast<float *>(memory_[0]);
    auto *ids = reinterpret_cast<int64_t *>(memory_[1]);
    auto *w = reinterpret_cast<float *>(memory_[2]),
         *gradient = reinterpret_cast<float *>(memory_[3]);
    double sum = 0, norm = 0;
    int64_t count = 0;
    if (program == 1) {
      std::memcpy(&count, memory_[4] + 8, 8);
      for (int i = 0; i < 2; ++i) {
        norm += std::pow(gradient[i] / count, 2);
        w[i] -= scalars_[kLearningRate] * gradient[i] / count;
      }
      float result = std::sqrt(norm);
      std::memcpy(memory_[4] + 24, &result, 4);
      ++updates;
      return llvm::Error::success();
    }
    gradient[0] = gradient[1] = 0;
    for (int64_t row = 0; row < batch_; ++row) {
      if (ids[row] == -1)
        continue;
      double error = w[0] * x[2 * row] + w[1] * x[2 * row + 1] - ids[row];
      sum += error * error;
      ++count;
      gradient[0] += 2 * error * x[2 * row];
      gradient[1] += 2 * error * x[2 * row + 1];
    }
    if (updates + 1 == nanAtStep)
      sum = std::numeric_limits<double>::quiet_NaN();
    int32_t correct = count;
    std::memcpy(memory_[4], &sum, 8);
    std::memcpy(memory_[4] + 8, &count, 8);
    std::memcpy(memory_[4] + 16, &correct, 4);
    return llvm::Error::success();
  }

  int64_t updates = 0, nanAtStep = -1;

private:
  int64_t batch_;
  alignas(64) char memory_[5][1024] = {};
  double scalars_[kNumScalars] = {};
};

} // namespace shardc::test
