// SPDX-License-Identifier: Apache-2.0
// The part of the executor that runs once: commands become kernels with streams and events.
#include "ir/base/Error.h"
#include "runtime/comm/Communicator.h"
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/cuda/Tuner.h"
#include "runtime/host/BindCommand.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace shardc::cuda {

/// Most streams of a plan: compute, gathers, reductions, copies, and some.
constexpr unsigned kMaxStreams = 16;

llvm::Expected<Stream *> CudaExecutor::streamOf(const plan::Command &command) {
  unsigned index = command.stream();
  if (index >= kMaxStreams)
    return userError(host::placeOf(plan_, command) + llvm::Twine(": stream: got ") +
                     llvm::Twine(index) + ", wanted below " + llvm::Twine(kMaxStreams));
  std::unique_ptr<Stream> &stream = streams_[index];
  if (!stream) {
    stream = std::make_unique<Stream>();
    if (llvm::Error e = stream->create(/*urgent=*/true)) // others wait for communication
      return e;
    if (llvm::Error e = joined_[stream.get()].create())
      return e;
  }
  return stream.get();
}

host::RankContext CudaExecutor::rankContext() const {
  auto *scalars = reinterpret_cast<const double *>(memory_->buffers()[plan_.scalars_buffer()]);
  return {plan_, memory_->buffers(), scalars, options_.communicator, rank()};
}

llvm::Error CudaExecutor::bindProgram(const plan::Program &program) {
  Program &bound = programs_.emplace_back();
  host::RankContext context = rankContext();
  llvm::DenseMap<uint64_t, Event *>
      signalled; // a 32-bit key may be one that the map keeps for itself
  for (const plan::Command &command : program.commands()) {
    auto bad = [&](const char *what, uint32_t event) {
      return userError(host::placeOf(plan_, command) + llvm::Twine(": ") + what +
                       llvm::Twine(event));
    };
    auto stream = streamOf(command);
    if (!stream)
      return stream.takeError();
    Issue issue;
    issue.stream = *stream;
    if (*stream != streams_[0].get() && !llvm::is_contained(bound.forks, *stream))
      bound.forks.push_back(*stream);
    for (uint32_t event : command.waits()) {
      Event *found = signalled.lookup(event);
      if (!found)
        return bad("waits for what nothing before it signals: event ", event);
      issue.waits.push_back(found);
    }
    for (uint32_t event : command.signals()) {
      if (signalled.count(event))
        return bad("signals what is signalled already: event ", event);
      Event &made = *events_.emplace_back(std::make_unique<Event>());
      if (llvm::Error e = made.create())
        return e;
      issue.signals.push_back(signalled[event] = &made);
    }
    auto binding = host::bindOperands(context, command);
    if (!binding)
      return binding.takeError();
    auto kernel = findKernel(command.kernel())(*binding, *device_);
    if (!kernel)
      return kernel.takeError();
    issue.kernel = std::move(*kernel);
    if (options_.trace)
      for (Event *event : {&issue.begin, &issue.end})
        if (llvm::Error e = event->create(/*timed=*/true))
          return e;
    bound.issues.push_back(std::move(issue));
  }
  return llvm::Error::success();
}

namespace {

/// Collects the sources that kernels want compiled.
class SourceCollector final : public Device {
public:
  llvm::Expected<cudaKernel_t> compile(llvm::StringRef source, llvm::StringRef) override {
    if (seen_.insert(source).second)
      sources.push_back(source.str());
    return cudaKernel_t(nullptr);
  }
  std::vector<std::string> sources;

private:
  llvm::StringSet<> seen_;
};

} // namespace

unsigned CudaExecutor::compileKernels() {
  SourceCollector collector;
  host::RankContext context = rankContext();
  for (const plan::Program &program : plan_.programs())
    for (const plan::Command &command : program.commands()) {
      if (!findAttr(command.attrs(), "body")) // only scalar programs become sources
        continue;
      auto binding = host::bindOperands(context, command);
      auto kernel = binding ? findKernel(command.kernel())(*binding, collector) : BoundKernel(binding.takeError());
      llvm::consumeError(kernel.takeError()); // said when it is bound for the device
    }
  return device_->compileAhead(collector.sources);
}

llvm::Error CudaExecutor::bindPrograms() {
  const unsigned compiled = compileKernels();
  progress(llvm::Twine(compiled) + " kernels compiled, others were on the disk");
  Tuner tuner(deviceOptions_.tuning, *device_, options_.communicator, memory_->largestOfDevice(),
              counters_.get());
  device_->tuneBy(&tuner);
  programs_.reserve(plan_.programs_size());
  for (const plan::Program &program : plan_.programs())
    if (llvm::Error e = bindProgram(program))
      return e;
  device_->tuneBy(nullptr);
  progress("commands bound");
  if (llvm::Error e = tuner.settle())
    return e;
  if (llvm::Error e = counters_->allocate())
    return e;
  progress(llvm::Twine(tuner.timed()) + " products timed, others were in the tuning file");
  return tuner.hasScribbled() ? memory_->clear() : llvm::Error::success();
}

} // namespace shardc::cuda
