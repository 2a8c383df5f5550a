// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/CudaExecutor.h"
#include "ir/base/Error.h"
#include "ir/plan/Scalars.h"
#include "runtime/Ranks.h"
#include "runtime/Trace.h"
#include "runtime/comm/Communicator.h"
#include "runtime/cuda/PeakFlops.h"
#include "runtime/host/BindCommand.h"
#include <chrono>
#include <set>
#include <thread>

namespace shardc::cuda {

unsigned CudaExecutor::rank() const { return options_.communicator ? options_.communicator->rank() : 0; }

CudaExecutor::~CudaExecutor() {
  if (!device_)
    return;
  cudaSetDevice(device_->ordinal());
  if (!isLost_) {
    for (auto &[number, stream] : streams_)
      llvm::consumeError(stream->synchronize());
    for (Program &program : programs_)
      program.graph.destroy(); // before the communicators
    if (communicator_)
      communicator_->disconnect(); // before memory
    return;
  }
  // Whatever is destroyed now could wait for ever: given up.
  new std::vector<Program>(std::move(programs_));
  new auto(std::move(streams_));
  new auto(std::move(joined_));
  new auto(std::move(events_));
  new auto(std::move(staging_));
  new auto(std::move(scalarsStaging_));
  new auto(std::move(fetched_));
  new auto(std::move(started_));
  new auto(std::move(finished_));
  new auto(std::move(stamp_));
  new auto(std::move(fault_));
  (void)counters_.release();
  if (memory_)
    new Memory(std::move(*memory_));
  (void)communicator_.release();
  (void)device_.release();
}

llvm::Error CudaExecutor::load() {
  if (options_.disjoint || options_.delaySeed)
    return userError("--check-races: got a CUDA device, wanted the host", "add --device cpu");
  if (llvm::Error e = checkRanks(plan_, options_.communicator))
    return e;
  if (llvm::Error e = checkKernels())
    return e;
  auto device = Device::create(deviceOptions_.ordinal);
  if (!device)
    return device.takeError();
  device_ = std::move(*device);
  progress("device opened");
  if (llvm::Error e = openCommunicator())
    return e;
  if (llvm::Error e = allocate())
    return e;
  progress("memory allocated");
  if (llvm::Error e = bindPrograms())
    return e;
  if (llvm::Error e = loadConstants())
    return e;
  if (llvm::Error e = check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"))
    return e;
  if (!communicator())
    return llvm::Error::success();
  if (llvm::Error e = waitForAll(*options_.communicator)) // none connects where one has failed
    return e;
  if (llvm::Error e = communicator()->connect())
    return e;
  progress("ranks connected");
  return llvm::Error::success();
}

llvm::Error CudaExecutor::checkKernels() const {
  std::set<std::string> missing;
  for (const plan::Program &program : plan_.programs())
    for (const plan::Command &command : program.commands())
      if (!findKernel(command.kernel()))
        missing.insert(command.kernel());
  if (missing.empty())
    return llvm::Error::success();
  std::string names;
  for (const std::string &name : missing)
    names += (names.empty() ? "" : ", ") + name;
  return userError("plan: no CUDA kernels for: " + names, "run it with --device cpu");
}

llvm::Error CudaExecutor::openCommunicator() {
  Communicator *host = options_.communicator;
  if (!host || (host->size() == 1 && !deviceOptions_.nccl))
    return llvm::Error::success();
  std::set<unsigned> channels;
  for (const plan::Program &program : plan_.programs())
    for (const plan::Command &command : program.commands())
      if (unsigned channel = command.communicator(); channel && channel < Communicator::kChannels) // others bind to an error
        channels.insert(channel);
  std::vector<unsigned> list(channels.begin(), channels.end());
  auto made = deviceOptions_.nccl ? makeNcclCommunicator(*host, list) : makeLocalCommunicator(*host);
  if (!made)
    return made.takeError();
  communicator_ = std::move(*made);
  device_->join(communicator());
  return llvm::Error::success();
}

llvm::Error CudaExecutor::allocate() {
  auto memory = Memory::create(plan_, communicator());
  if (!memory)
    return memory.takeError();
  memory_.emplace(std::move(*memory));
  uint32_t s = plan_.scalars_buffer();
  if (s >= memory_->buffers().size() || plan_.buffers(s).bytes() < kNumScalars * sizeof(double))
    return userError("scalars buffer: is missing or too small");
  scalars_[kRank] = rank();
  constexpr unsigned kScalarAreas = 4, kInputAreas = 2;
  if (llvm::Error e = scalarsStaging_.open(kScalarAreas, sizeof scalars_))
    return e;
  if (llvm::Error e = fault_.allocate(sizeof(FaultRecord)))
    return e;
  if (llvm::Error e = fetched_.open())
    return e;
  for (const plan::Input &input : plan_.inputs())
    if (uint32_t i = input.buffer(); i < memory_->buffers().size() && !staging_.count(i))
      if (llvm::Error e = staging_[i].open(kInputAreas, plan_.buffers(i).bytes()))
        return e;
  streams_[0] = std::make_unique<Stream>();
  if (llvm::Error e = streams_[0]->create(/*urgent=*/false))
    return e;
  if (llvm::Error e = started_.create())
    return e;
  if (llvm::Error e = stamp_.create(/*timed=*/true))
    return e;
  return finished_.create();
}

llvm::Error CudaExecutor::loadConstants() {
  for (const plan::ConstantData &constant : plan_.constants()) {
    uint32_t i = constant.buffer();
    if (i >= memory_->buffers().size() || constant.data().size() > plan_.buffers(i).bytes())
      return userError("constant of buffer " + llvm::Twine(i) + ": does not fit");
    if (llvm::Error e = write(i, 0, constant.data().data(), constant.data().size()))
      return e;
  }
  return llvm::Error::success();
}

llvm::Error CudaExecutor::write(uint32_t buffer, uint64_t offset, const void *from, uint64_t bytes) {
  char *to = memory_->buffers()[buffer] + offset;
  if (auto staging = staging_.find(buffer); staging != staging_.end())
    return staging->second.send(to, from, bytes, first());
  if (llvm::Error e = check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, first()), "cudaMemcpyAsync"))
    return e;
  return streams_[0]->synchronize();
}

llvm::Error CudaExecutor::read(uint32_t buffer, uint64_t offset, void *to, uint64_t bytes) {
  const char *from = memory_->buffers()[buffer] + offset;
  if (llvm::Error e = check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, first()), "cudaMemcpyAsync"))
    return e;
  return streams_[0]->synchronize();
}

llvm::Error CudaExecutor::fetch(uint32_t buffer, uint64_t offset, void *to, uint64_t bytes) {
  if (fetched_.isFull())
    return read(buffer, offset, to, bytes);
  if (llvm::Error e = fetched_.fetch(memory_->buffers()[buffer] + offset, to, bytes, first()))
    return e;
  isBegun_ = true;
  return finished_.record(first());
}

llvm::Error CudaExecutor::enqueueFork(Program &program) {
  if (llvm::Error e = started_.record(first()))
    return e;
  for (Stream *stream : program.forks)
    if (llvm::Error e = started_.holdBack(stream->get()))
      return e;
  return llvm::Error::success();
}

llvm::Error CudaExecutor::launch(Issue &issue, bool captured) {
  cudaStream_t stream = issue.stream->get();
  if (!options_.trace)
    return issue.kernel->launch(stream);
  if (llvm::Error e = issue.begin.stamp(stream, captured))
    return e;
  if (llvm::Error e = issue.kernel->launch(stream))
    return e;
  return issue.end.stamp(stream, captured);
}

llvm::Error CudaExecutor::leaveTrace(int index) {
  int command = 0;
  for (Issue &issue : programs_[index].issues) {
    float begin = 0, end = 0; // milliseconds
    if (llvm::Error e = check(cudaEventElapsedTime(&begin, stamp_.get(), issue.begin.get()), "cudaEventElapsedTime"))
      return e;
    if (llvm::Error e = check(cudaEventElapsedTime(&end, stamp_.get(), issue.end.get()), "cudaEventElapsedTime"))
      return e;
    options_.trace->set(index, command++, begin * 1e3, end * 1e3);
  }
  return llvm::Error::success();
}

llvm::Error CudaExecutor::enqueue(Program &program, bool captured) {
  if (llvm::Error e = enqueueFork(program))
    return e;
  for (Issue &issue : program.issues) {
    cudaStream_t stream = issue.stream->get();
    for (Event *event : issue.waits)
      if (llvm::Error e = event->holdBack(stream))
        return e;
    if (llvm::Error e = launch(issue, captured))
      return e;
    for (Event *event : issue.signals)
      if (llvm::Error e = event->record(stream))
        return e;
  }
  for (Stream *stream : program.forks) {
    Event &joined = joined_.find(stream)->second;
    if (llvm::Error e = joined.record(stream->get()))
      return e;
    if (llvm::Error e = joined.holdBack(first()))
      return e;
  }
  return check(cudaMemcpyAsync(fault_.data(), device_->fault(), sizeof(FaultRecord), cudaMemcpyDeviceToHost, first()),
               "cudaMemcpyAsync");
}

llvm::Error CudaExecutor::wait() {
  if (!communicator() || !deviceOptions_.nccl)
    return check(cudaEventSynchronize(finished_.get()), "cudaEventSynchronize");
  constexpr unsigned kPollsBetweenChecks = 4096; // some milliseconds
  for (unsigned polls = 1;; ++polls) {
    cudaError_t code = cudaEventQuery(finished_.get());
    if (code != cudaErrorNotReady)
      return check(code, "cudaEventQuery");
    if (polls % kPollsBetweenChecks)
      continue;
    if (options_.communicator->aborted())
      return groupError(*options_.communicator, Exit::Fault);
    if (llvm::Error e = communicator()->poll())
      return causeOf(std::move(e));
    std::this_thread::yield();
  }
}

llvm::Error CudaExecutor::causeOf(llvm::Error error) const {
  constexpr std::chrono::milliseconds kPatience(2000), kPause(10);
  for (auto waited = kPatience * 0; waited < kPatience; waited += kPause) {
    if (options_.communicator->aborted()) {
      llvm::consumeError(std::move(error));
      return groupError(*options_.communicator, Exit::Fault);
    }
    std::this_thread::sleep_for(kPause);
  }
  return error;
}

llvm::Error CudaExecutor::fail(std::string text) {
  if (!communicator())
    return userError(text, "", Exit::Fault);
  options_.communicator->abort(text);
  isLost_ = deviceOptions_.nccl;
  if (isLost_)
    communicator()->abort();
  return groupError(*options_.communicator, Exit::Fault);
}

llvm::Error CudaExecutor::giveUp(llvm::Error error) {
  isBegun_ = false;
  fetched_.forget();
  if (communicator() && !deviceOptions_.nccl) // others' arrays may still be in use
    for (auto &[number, stream] : streams_)
      llvm::consumeError(stream->synchronize());
  return fail(llvm::toString(std::move(error)));
}

llvm::Error CudaExecutor::begin(Program &program) {
  if (options_.trace)
    if (llvm::Error e = stamp_.record(first()))
      return e;
  char *scalars = memory_->buffers()[plan_.scalars_buffer()];
  if (llvm::Error e = scalarsStaging_.send(scalars, scalars_, sizeof scalars_, first()))
    return e;
  // The first run is no graph: the driver loads kernels, and communicators find their ways, when they are used first.
  const bool asGraph = program.hasRun && deviceOptions_.graphs && (!communicator() || communicator()->capturable());
  if (asGraph && !program.graph)
    if (llvm::Error e = program.graph.capture(
            first(), [&] { return enqueue(program, /*captured=*/true); }, counters_->all()))
      return e;
  if (asGraph && !counters_->all().empty())
    if (llvm::Error e = check(cudaMemsetAsync(counters_->all().data(), 0, counters_->all().size(), first()),
                              "cudaMemsetAsync"))
      return e;
  if (llvm::Error e = asGraph ? program.graph.launch(first()) : enqueue(program, /*captured=*/false))
    return e;
  program.hasRun = true;
  return finished_.record(first());
}

llvm::Error CudaExecutor::start(int index) {
  assert(index >= 0 && index < int(programs_.size()));
  if (llvm::Error error = begin(programs_[index]))
    return giveUp(std::move(error));
  isBegun_ = true;
  if (!options_.trace)
    return llvm::Error::success();
  if (llvm::Error e = finish())
    return e;
  return leaveTrace(index);
}

llvm::Error CudaExecutor::finish() {
  if (!isBegun_)
    return llvm::Error::success();
  if (llvm::Error error = wait())
    return giveUp(std::move(error));
  isBegun_ = false;
  fetched_.deliver();
  return takeFault();
}

llvm::Error CudaExecutor::run(int index) {
  if (llvm::Error e = start(index))
    return e;
  return finish();
}

llvm::Error CudaExecutor::takeFault() {
  FaultRecord &fault = *fault_.as<FaultRecord>();
  if (!fault.raised) [[likely]]
    return llvm::Error::success();
  std::string text = device_->message(fault);
  fault = {};
  if (llvm::Error e = check(cudaMemsetAsync(device_->fault(), 0, sizeof(FaultRecord), first()), "cudaMemsetAsync"))
    return e;
  if (!communicator())
    return userError(text);
  return fail(text);
}

double CudaExecutor::peakFlops() const {
  const plan::Attr *precision = findAttr(plan_.options(), "precision");
  const unsigned sharing = communicator() && !deviceOptions_.nccl ? communicator()->size() : 1;
  return cuda::peakFlops(device_->name(), precision ? llvm::StringRef(precision->s()) : "fp32") / sharing;
}

llvm::Expected<std::unique_ptr<Executor>> createExecutor(const plan::Plan &plan, const ExecutorOptions &options,
                                                         const DeviceOptions &deviceOptions) {
  auto executor = std::make_unique<CudaExecutor>(plan, options, deviceOptions);
  if (llvm::Error e = executor->load())
    return e;
  return executor;
}

} // namespace shardc::cuda
