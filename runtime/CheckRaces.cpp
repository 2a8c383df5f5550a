// SPDX-License-Identifier: Apache-2.0
#include "runtime/CheckRaces.h"
#include "ir/base/Error.h"
#include "ir/base/Movement.h"
#include "ir/base/Tensor.h"
#include "runtime/comm/Communicator.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cstring>

namespace shardc {
namespace {

llvm::Error difference(const plan::Plan &plan, int program, llvm::StringRef what, uint64_t byte, unsigned char got,
                       unsigned char wanted) {
  return userError(llvm::formatv("check-races: program {0}: {1}, byte {2}: got {3:x2}, wanted {4:x2} as with disjoint memory",
                                 plan.programs(program).name(), what, byte, unsigned(got), unsigned(wanted))
                       .str(),
                   "the plan lets something overwrite this memory, or reads it too early: please report the plan",
                   Exit::Fault);
}

/// First byte in which a and b differ; `bytes` if none.
uint64_t firstDifference(const char *a, const char *b, uint64_t bytes) {
  if (std::memcmp(a, b, bytes) == 0)
    return bytes;
  return std::mismatch(a, a + bytes, b).first - a;
}

/// The elements of an operand, end to end.
void pack(const plan::Ref &ref, const void *data, std::vector<char> &to) {
  Dims dims(ref.dims().begin(), ref.dims().end()), dense = rowMajorStrides(dims);
  Dims strides(ref.strides().begin(), ref.strides().end());
  int64_t size = byteSize(DType(ref.dtype()));
  to.resize(numElements(dims) * size);
  stridedCopy(to.data(), dense, data, ref.strides().empty() ? dense : strides, dims, size);
}

class RaceChecked final : public Executor {
public:
  RaceChecked(const plan::Plan &plan, const RaceCheckOptions &options) : plan_(plan), options_(options) {}

  llvm::Error load() {
    auto create = [&](Communicator *communicator, bool disjoint, uint64_t seed) {
      ExecutorOptions options;
      options.communicator = communicator;
      options.disjoint = disjoint;
      options.delaySeed = options_.delaySeed ? seed : 0;
      return Executor::create(plan_, options);
    };
    auto planned = create(options_.planned, false, options_.delaySeed);
    if (!planned)
      return planned.takeError();
    auto disjoint = create(options_.disjoint, true, ~options_.delaySeed);
    if (!disjoint)
      return disjoint.takeError();
    planned_ = std::move(*planned);
    disjoint_ = std::move(*disjoint);
    return llvm::Error::success();
  }

  void *buffer(uint32_t index) override { return planned_->buffer(index); }
  double *scalars() override { return planned_->scalars(); }
  unsigned rank() const override { return planned_->rank(); }
  int program(llvm::StringRef name) const override { return planned_->program(name); }

  llvm::Error run(int program) override {
    // Equal already but for what the caller has written since the last comparison.
    for (int i = 0; i < plan_.buffers_size(); ++i)
      if (plan_.buffers(i).persistent())
        std::memcpy(disjoint_->buffer(i), planned_->buffer(i), plan_.buffers(i).bytes());
    if (llvm::Error error = planned_->run(program))
      return abort(std::move(error));
    if (llvm::Error error = disjoint_->run(program))
      return abort(std::move(error));
    if (llvm::Error error = compareMemory(plan_, program, *planned_, *disjoint_))
      return abort(std::move(error));
    return llvm::Error::success();
  }

private:
  /// Other ranks may wait in either group. All name the rank that failed first.
  llvm::Error abort(llvm::Error error) {
    return llvm::handleErrors(std::move(error), [&](const UserError &mistake) {
      std::string text = mistake.text().str();
      Communicator *groups[] = {options_.planned, options_.disjoint};
      for (Communicator *group : groups)
        if (group && group->size() > 1)
          group->abort(text);
      bool alone = !options_.planned || options_.planned->size() == 1;
      return userError(alone ? text : options_.planned->cause(), mistake.hint(), mistake.code());
    });
  }

  const plan::Plan &plan_;
  RaceCheckOptions options_;
  std::unique_ptr<Executor> planned_, disjoint_;
};

} // namespace

llvm::Error compareMemory(const plan::Plan &plan, int program, Executor &planned, Executor &disjoint) {
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const plan::Buffer &buffer = plan.buffers(i);
    if (!buffer.persistent())
      continue;
    auto *a = static_cast<const char *>(planned.buffer(i)), *b = static_cast<const char *>(disjoint.buffer(i));
    uint64_t byte = firstDifference(a, b, buffer.bytes());
    if (byte < buffer.bytes())
      return difference(plan, program, "buffer " + buffer.name(), byte, a[byte], b[byte]);
  }
  std::vector<char> a, b;
  for (const plan::Output &output : plan.outputs()) {
    if (output.program() != plan.programs(program).name() || output.ref().absent())
      continue;
    pack(output.ref(), planned.at(output.ref()), a);
    pack(output.ref(), disjoint.at(output.ref()), b);
    uint64_t byte = firstDifference(a.data(), b.data(), a.size());
    if (byte < a.size())
      return difference(plan, program, "output " + output.name(), byte, a[byte], b[byte]);
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Executor>> createRaceChecked(const plan::Plan &plan, const RaceCheckOptions &options) {
  auto executor = std::make_unique<RaceChecked>(plan, options);
  if (llvm::Error error = executor->load())
    return error;
  return executor;
}

} // namespace shardc
