// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/HostExecutor.h"
#include "ir/base/Error.h"
#include "ir/plan/Scalars.h"
#include "runtime/comm/Communicator.h"
#include "runtime/host/Narrow.h"
#include "llvm/ADT/DenseSet.h"
#include <cstring>

namespace shardc::host {

/// Most streams of a plan: compute, gathers, reductions, copies, and some.
constexpr unsigned kMaxStreams = 16;

unsigned HostExecutor::rank() const { return options_.communicator ? options_.communicator->rank() : 0; }
int HostExecutor::program(llvm::StringRef name) const { return programIndex(plan_, name); }

llvm::Error HostExecutor::load() {
  if (llvm::Error e = checkRanks(plan_, options_.communicator))
    return e;
  auto memory = Memory::create(plan_, options_.disjoint);
  if (!memory)
    return memory.takeError();
  memory_ = std::move(*memory);
  uint32_t s = plan_.scalars_buffer();
  if (s >= memory_->size() || plan_.buffers(s).bytes() < kNumScalars * sizeof(double))
    return userError("scalars buffer: is missing or too small");
  scalars_ = static_cast<double *>(buffer(s));
  scalars_[kRank] = rank();
  if (llvm::Error e = loadConstants())
    return e;
  if (llvm::Error e = addStream(0))
    return e;
  for (int p = 0; p < plan_.programs_size(); ++p)
    if (llvm::Error e = bindProgram(p))
      return e;
  startThreads();
  return llvm::Error::success();
}

llvm::Error HostExecutor::loadConstants() {
  for (const plan::ConstantData &constant : plan_.constants()) {
    uint32_t i = constant.buffer();
    if (i >= memory_->size() || constant.data().size() > plan_.buffers(i).bytes())
      return userError("constant of buffer " + llvm::Twine(i) + ": does not fit");
    std::memcpy(buffer(i), constant.data().data(), constant.data().size());
  }
  return llvm::Error::success();
}

llvm::Expected<Stream *> HostExecutor::streamOf(const plan::Command &command) {
  unsigned index = command.stream();
  for (const std::unique_ptr<Stream> &stream : streams_)
    if (stream->index == index)
      return stream.get();
  if (index >= kMaxStreams)
    return userError(placeOf(plan_, command) + llvm::Twine(": stream: got ") + llvm::Twine(index) +
                     ", wanted below " + llvm::Twine(kMaxStreams));
  if (llvm::Error e = addStream(index))
    return e;
  return streams_.back().get();
}

llvm::Error HostExecutor::addStream(unsigned index) {
  auto stream = std::make_unique<Stream>(index, plan_.programs_size(), Delays(options_.delaySeed, rank(), index));
  for (const plan::Program &program : plan_.programs())
    for (const plan::Command &command : program.commands())
      if (command.stream() == index)
        stream->scratchBytes = std::max(stream->scratchBytes, scratchBytes(command).value_or(0));
  if (stream->scratchBytes) {
    stream->scratch.reset(new (std::nothrow) char[stream->scratchBytes]);
    if (!stream->scratch)
      return userError("scratch memory for 16-bit operands: got none, wanted " + llvm::Twine(stream->scratchBytes) + " bytes");
  }
  streams_.push_back(std::move(stream));
  return llvm::Error::success();
}

llvm::Error HostExecutor::bindProgram(int program) {
  RankContext context{plan_, memory_->buffers(), scalars_, options_.communicator, rank()};
  llvm::DenseMap<uint64_t, Event *> signalled; // a 32-bit key may be one that the map keeps for itself
  int index = 0; // of the command
  for (const plan::Command &command : plan_.programs(program).commands()) {
    auto stream = streamOf(command);
    if (!stream)
      return stream.takeError();
    Issue issue;
    issue.collective = command.communicator() != 0;
    auto bad = [&](const char *what, uint32_t event) {
      return userError(placeOf(plan_, command) + llvm::Twine(": ") + what + llvm::Twine(event));
    };
    for (uint32_t event : command.waits()) {
      Event *found = signalled.lookup(event);
      if (!found) // the wait would never end
        return bad("waits for what nothing before it signals: event ", event);
      issue.waits.push_back(found);
    }
    for (uint32_t event : command.signals()) {
      if (signalled.count(event))
        return bad("signals what is signalled already: event ", event);
      issue.signals.push_back(signalled[event] = events_.emplace_back(std::make_unique<Event>()).get());
    }
    auto kernel = bindCommand(context, command, **stream);
    if (!kernel)
      return kernel.takeError();
    issue.kernel = std::move(*kernel);
    if (options_.trace)
      issue.kernel = std::make_unique<Traced>(std::move(issue.kernel), *options_.trace, program, index, start_);
    ++index;
    (*stream)->programs[program].push_back(std::move(issue));
  }
  return llvm::Error::success();
}

void HostExecutor::startThreads() {
  for (size_t i = 1; i < streams_.size(); ++i)
    threads_.push_back(
        std::make_unique<StreamThread>([this, stream = streams_[i].get()](int program) { issue(*stream, program); }));
}

void HostExecutor::issue(Stream &stream, int program) {
  if (!stream.issue(program, run_, stop_))
    fail(stream.fault);
}

void HostExecutor::fail(const Fault &fault) {
  std::string message = fault.lostRanks() ? options_.communicator->cause() : fault.message();
  if (options_.communicator && !fault.lostRanks())
    options_.communicator->abort(message);
  std::lock_guard<std::mutex> lock(failing_);
  if (stop_.exchange(true))
    return;
  failure_ = message;
  for (const std::unique_ptr<Event> &event : events_)
    event->stop(run_);
}

llvm::Error HostExecutor::takeFailure() {
  stop_ = false;
  bool lostRanks = false;
  for (const std::unique_ptr<Stream> &stream : streams_) {
    lostRanks |= stream->fault.lostRanks();
    stream->fault.clear();
  }
  // All ranks name the one that failed first.
  if (options_.communicator && (lostRanks || options_.communicator->size() > 1))
    return userError(options_.communicator->cause(), "", Exit::Fault);
  return userError(failure_);
}

llvm::Error HostExecutor::run(int program) {
  assert(program >= 0 && program < plan_.programs_size());
  run_ = nextRun(run_);
  memory_->forget(program);
  if (options_.trace)
    start_ = std::chrono::steady_clock::now();
  for (size_t i = 1; i < streams_.size(); ++i)
    if (!streams_[i]->programs[program].empty())
      threads_[i - 1]->start(program);
  issue(*streams_[0], program);
  for (size_t i = 1; i < streams_.size(); ++i)
    if (!streams_[i]->programs[program].empty())
      threads_[i - 1]->join();
  if (stop_.load(std::memory_order_relaxed)) [[unlikely]]
    return takeFailure();
  return llvm::Error::success();
}

} // namespace shardc::host
