// SPDX-License-Identifier: Apache-2.0
// The memory of one rank's plan: one allocation for each space, and where each buffer lies in them.
#pragma once

#include "ir/plan/Plan.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace shardc::cuda {

class DeviceCommunicator;

/// Device memory, or pinned host memory for spaces that are no device's; zero at first. A plan is untrusted: buffers outside their
/// space are errors. What does not fit is an error with exit code 3.
class Memory {
public:
  /// `communicator`: gives the memory of the device, and outlives this; null: the device itself.
  static llvm::Expected<Memory> create(const plan::Plan &plan, DeviceCommunicator *communicator);
  Memory(Memory &&other) noexcept;
  ~Memory();

  /// All zero again, where it is the device's.
  llvm::Error clear();

  llvm::ArrayRef<char *> buffers() const { return buffers_; } ///< by index in the plan
  llvm::MutableArrayRef<char> largestOfDevice() const;        ///< space
  uint64_t deviceBytes() const { return deviceBytes_; }       ///< of all spaces of the device

private:
  struct Space {
    char *data;
    uint64_t bytes;
    bool onDevice;
  };
  explicit Memory(DeviceCommunicator *communicator) : communicator_(communicator) {}
  llvm::Error allocate(const plan::Space &space, int index);

  DeviceCommunicator *communicator_;
  std::vector<Space> spaces_;
  std::vector<char *> buffers_;
  uint64_t deviceBytes_ = 0;
};

} // namespace shardc::cuda
