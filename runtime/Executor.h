// SPDX-License-Identifier: Apache-2.0
// Executes a plan: binds every command to a kernel at load, then only issues them.
#pragma once

#include "ir/plan/Plan.h"
#include <memory>

namespace shardc {

class Communicator;
class Trace;

struct ExecutorOptions {
  /// The group that runs the plan together; outlives the executor. Null: one rank.
  Communicator *communicator = nullptr;
  /// Every buffer in memory of its own, but those that a command overwrites in place: what the plan lays over each other
  /// cannot disturb each other (`--check-races`). What lives in one program only is NaN each time that this starts.
  bool disjoint = false;
  /// Not 0: a random pause before each command, on each stream, of this seed: missing waits come to light.
  uint64_t delaySeed = 0;
  /// Where each run leaves when its commands ran; outlives the executor. Null: nowhere.
  Trace *trace = nullptr;
};

/// One rank. Owns the arenas of its spaces. Requires: `plan` is sound (checkPlan) and outlives it. One thread uses it.
/// After `create` no function allocates, looks a name up or decides anything.
class Executor {
public:
  /// On the host: each stream of the plan that has commands runs on a thread of its own (the first on the caller's).
  /// Binds all programs; an unknown kernel or a shape that a kernel does not take is an error with the command's place.
  static llvm::Expected<std::unique_ptr<Executor>> create(const plan::Plan &plan, const ExecutorOptions &options = {});
  virtual ~Executor() = default;

  /// Start of a buffer in this rank's memory; null where that is on a device. `write` and `read` serve both.
  virtual void *buffer(uint32_t index) = 0;
  /// Bytes [offset, offset + bytes) of a buffer; done on return. Requires: inside the buffer. Errors: of a device.
  virtual llvm::Error write(uint32_t buffer, uint64_t offset, const void *from, uint64_t bytes);
  virtual llvm::Error read(uint32_t buffer, uint64_t offset, void *to, uint64_t bytes);
  /// Where an operand starts in its buffer: this rank's slice, where it has a rank stride.
  uint64_t offsetOf(const plan::Ref &ref) const { return ref.offset() + rank() * ref.rank_stride(); }
  /// The same as an address. Requires: host memory.
  void *at(const plan::Ref &ref) {
    return static_cast<char *>(buffer(ref.buffer())) + offsetOf(ref);
  }
  virtual unsigned rank() const = 0;
  /// The f64[kNumScalars] array (ir/plan/Scalars.h), in host memory; a device takes it over at each run.
  virtual double *scalars() = 0;
  /// Index of a program by name, -1 if there is none; look up once.
  virtual int program(llvm::StringRef name) const = 0;
  /// Runs a program to its end. A kernel's fault aborts the communicator; where another rank failed, the error is its cause.
  virtual llvm::Error run(int program) = 0;
  /// Begins to run a program, and may return before its end. What was begun runs in its order, each program with the scalars as they
  /// were when it was begun; a `write` and a `fetch` come between what was begun before and what is begun after.
  virtual llvm::Error start(int program) { return run(program); }
  /// As `read`, but `to` has the bytes only when `finish` has returned. Requires: at most 8 bytes.
  virtual llvm::Error fetch(uint32_t buffer, uint64_t offset, void *to, uint64_t bytes) { return read(buffer, offset, to, bytes); }
  /// Until all that was begun has ended. Errors: as those of `run`.
  virtual llvm::Error finish() { return llvm::Error::success(); }

  /// Operations a second of the device at its best, by its data sheet, in the precision of the plan's products; of one that ranks
  /// share a rank's part. 0: not known.
  virtual double peakFlops() const { return 0; }

protected:
  /// Of every device: an error where the group has not as many ranks as the plan is for.
  static llvm::Error checkRanks(const plan::Plan &plan, const Communicator *communicator);
  static int programIndex(const plan::Plan &plan, llvm::StringRef name);
};

} // namespace shardc
