// SPDX-License-Identifier: Apache-2.0
#include "runtime/Executor.h"
#include "ir/base/Error.h"
#include "ir/plan/Scalars.h"
#include "runtime/Arena.h"
#include "runtime/comm/Communicator.h"
#include "runtime/host/Fault.h"
#include "runtime/host/Kernel.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace shardc {
namespace {

using host::Array;
using host::Kernel;

class HostExecutor final : public Executor {
public:
  HostExecutor(const plan::Plan &plan, const ExecutorOptions &options) : plan_(plan), options_(options) {}
  llvm::Error load();

  void *buffer(uint32_t index) override { return buffers_[index]; }
  double *scalars() override { return scalars_; }
  unsigned rank() const override { return options_.communicator ? options_.communicator->rank() : 0; }
  int program(llvm::StringRef name) const override {
    for (int i = 0; i < plan_.programs_size(); ++i)
      if (plan_.programs(i).name() == name)
        return i;
    return -1;
  }
  llvm::Error run(int program) override;

private:
  llvm::Error allocate();
  llvm::Error loadConstants();
  llvm::Error bind(const plan::Command &command, std::vector<std::unique_ptr<Kernel>> &into);
  llvm::Expected<Array> bind(const plan::Ref &ref, llvm::StringRef place);
  std::string place(const plan::Command &command) const {
    bool named =
        command.place() < uint32_t(plan_.strings_size()) && !plan_.strings(command.place()).empty();
    return named ? plan_.strings(command.place()) : command.kernel();
  }

  const plan::Plan &plan_;
  ExecutorOptions options_;
  std::vector<Arena> arenas_;
  std::vector<char *> buffers_;
  double *scalars_ = nullptr;
  std::vector<std::vector<std::unique_ptr<Kernel>>> programs_;
  host::Fault fault_;
};

llvm::Error HostExecutor::load() {
  if (llvm::Error e = allocate())
    return e;
  if (llvm::Error e = loadConstants())
    return e;
  programs_.resize(plan_.programs_size());
  for (int p = 0; p < plan_.programs_size(); ++p)
    for (const plan::Command &command : plan_.programs(p).commands())
      if (llvm::Error e = bind(command, programs_[p]))
        return e;
  return llvm::Error::success();
}

llvm::Error HostExecutor::allocate() {
  arenas_.reserve(plan_.spaces_size());
  for (int i = 0; i < plan_.spaces_size(); ++i) {
    const plan::Space &space = plan_.spaces(i);
    std::string place = "space " + std::to_string(i);
    if (space.kind() == plan::Space::FILE)
      return userError(place + ": the host runtime has no memory of kind file");
    auto arena = Arena::create(space.bytes(), place);
    if (!arena)
      return arena.takeError();
    arenas_.push_back(std::move(*arena));
  }
  for (const plan::Buffer &buffer : plan_.buffers()) {
    if (buffer.space() >= arenas_.size())
      return userError(llvm::Twine("buffer ") + buffer.name() + ": space: got " +
                       llvm::Twine(buffer.space()) + ", wanted below " +
                       llvm::Twine(arenas_.size()));
    uint64_t size = plan_.spaces(buffer.space()).bytes();
    if (buffer.offset() > size || buffer.bytes() > size - buffer.offset())
      return userError(llvm::Twine("buffer ") + buffer.name() + ": ends beyond its space of " +
                       llvm::Twine(size) + " bytes");
    if (buffer.offset() % sizeof(double))
      return userError(llvm::Twine("buffer ") + buffer.name() + ": offset: got " +
                       llvm::Twine(buffer.offset()) + ", wanted a multiple of 8");
    buffers_.push_back(arenas_[buffer.space()].data() + buffer.offset());
  }
  uint32_t s = plan_.scalars_buffer();
  if (s >= buffers_.size() || plan_.buffers(s).bytes() < kNumScalars * sizeof(double))
    return userError("scalars buffer: is missing or too small");
  scalars_ = reinterpret_cast<double *>(buffers_[s]);
  return llvm::Error::success();
}

llvm::Error HostExecutor::loadConstants() {
  for (const plan::ConstantData &constant : plan_.constants()) {
    uint32_t i = constant.buffer();
    if (i >= buffers_.size() || constant.data().size() > plan_.buffers(i).bytes())
      return userError("constant of buffer " + llvm::Twine(i) + ": does not fit");
    std::memcpy(buffers_[i], constant.data().data(), constant.data().size());
  }
  return llvm::Error::success();
}

llvm::Expected<Array> HostExecutor::bind(const plan::Ref &ref, llvm::StringRef place) {
  Array a;
  if (ref.absent())
    return a;
  auto bad = [&](const llvm::Twine &what) { return userError(place + ": operand " + what); };
  if (ref.buffer() >= buffers_.size())
    return bad("of unknown buffer " + llvm::Twine(ref.buffer()));
  if (ref.dtype() >= kNumDTypes)
    return bad("of unknown type " + llvm::Twine(ref.dtype()));
  a.dtype = DType(ref.dtype());
  a.dims.assign(ref.dims().begin(), ref.dims().end());
  if (a.dims.size() > host::kMaxRank)
    return bad("rank: got " + llvm::Twine(a.dims.size()) + ", wanted at most " +
               llvm::Twine(host::kMaxRank));
  std::optional<int64_t> elements = checkedNumElements(a.dims);
  if (!elements)
    return bad("shape: got " + formatDims(a.dims) + ", wanted no negative or overflowing sizes");
  if (ref.strides().empty())
    a.strides = rowMajorStrides(a.dims);
  else
    a.strides.assign(ref.strides().begin(), ref.strides().end());
  if (a.strides.size() != a.dims.size())
    return bad("strides: got " + llvm::Twine(a.strides.size()) + ", wanted one for each dim");
  // Where a stride moves nothing, what it says is of no account, so kernels see a plain one.
  Dims plain = rowMajorStrides(a.dims);
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (*elements == 0 || a.dims[i] == 1)
      a.strides[i] = plain[i];
  const int64_t size = byteSize(a.dtype), bytes = plan_.buffers(ref.buffer()).bytes();
  if (ref.offset() > uint64_t(bytes) || ref.offset() % size)
    return bad("offset: got " + llvm::Twine(ref.offset()) + ", wanted a multiple of " +
               llvm::Twine(size) + " in a buffer of " + llvm::Twine(bytes) + " bytes");
  int64_t low = 0, high = 0; // of the elements touched, from the offset
  for (size_t i = 0; *elements && i < a.dims.size(); ++i) {
    int64_t reach;
    int64_t &end = a.strides[i] < 0 ? low : high;
    if (llvm::MulOverflow(a.dims[i] - 1, a.strides[i], reach) || llvm::AddOverflow(end, reach, end))
      return bad("strides overflow");
  }
  int64_t start = int64_t(ref.offset()) / size, limit = bytes / size;
  if (*elements && (low < -start || high >= limit - start))
    return bad("reaches outside its buffer of " + llvm::Twine(bytes) + " bytes");
  a.data = buffers_[ref.buffer()] + ref.offset();
  return a;
}

llvm::Error HostExecutor::bind(const plan::Command &command,
                               std::vector<std::unique_ptr<Kernel>> &into) {
  host::Binding binding;
  binding.place = place(command);
  binding.command = &command;
  binding.scalars = scalars_;
  binding.fault = &fault_;
  host::Bind bindKernel = host::findKernel(command.kernel());
  if (!bindKernel)
    return userError(llvm::Twine(binding.place) + ": no host kernel is called " + command.kernel());
  for (const plan::Ref &ref : command.inputs()) {
    auto array = bind(ref, binding.place);
    if (!array)
      return array.takeError();
    binding.in.push_back(std::move(*array));
  }
  for (const plan::Ref &ref : command.outputs()) {
    auto array = bind(ref, binding.place);
    if (!array)
      return array.takeError();
    binding.out.push_back(std::move(*array));
  }
  if (command.has_workspace()) {
    auto array = bind(command.workspace(), binding.place);
    if (!array)
      return array.takeError();
    if (*array && array->contiguous()) {
      binding.workspace = array->data;
      binding.workspaceBytes = array->numElements() * byteSize(array->dtype);
    }
  }
  auto kernel = bindKernel(binding);
  if (!kernel)
    return kernel.takeError();
  into.push_back(std::move(*kernel));
  return llvm::Error::success();
}

llvm::Error HostExecutor::run(int program) {
  assert(program >= 0 && size_t(program) < programs_.size());
  for (const std::unique_ptr<Kernel> &kernel : programs_[program]) {
    kernel->run();
    if (fault_.raised()) [[unlikely]] {
      std::string message = fault_.message();
      fault_.clear();
      return userError(message);
    }
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::unique_ptr<Executor>> Executor::create(const plan::Plan &plan, const ExecutorOptions &options) {
  auto executor = std::make_unique<HostExecutor>(plan, options);
  if (llvm::Error e = executor->load())
    return e;
  return executor;
}

} // namespace shardc
