// SPDX-License-Identifier: Apache-2.0
// Reading and writing plan files.
#pragma once

#include "ir/base/DType.h"
#include "ir/plan/plan.pb.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace shardc {

constexpr uint32_t kPlanVersion = 1;
/// Every buffer starts at a multiple of this many bytes.
constexpr uint64_t kAlignment = 256;

/// File: "SHARDCPL", u32 version, u64 length, the protobuf, sha256 of all before it. The checksum is verified first.
/// Serialisation is deterministic. Written to a temporary name, synced, renamed.
llvm::Error writePlan(const plan::Plan &plan, llvm::StringRef path);
/// Refuses what is damaged, of another version, or not sound (`checkPlan`).
llvm::Expected<plan::Plan> readPlan(llvm::StringRef path);
llvm::Expected<plan::Plan> parsePlan(llvm::StringRef bytes, llvm::StringRef place);
std::string serializePlan(const plan::Plan &plan);

/// Judges a plan from the plan alone (design: section 8): bounds, indices, overlap in time and address, read before write,
/// waits and signals. Shares no code with the planner. Empty: sound.
llvm::Error checkPlan(const plan::Plan &plan);

/// The text form that `shardc-inspect --text` prints.
void printPlan(const plan::Plan &plan, llvm::raw_ostream &os);

/// Lookups for tools and tests.
const plan::Program *findProgram(const plan::Plan &plan, llvm::StringRef name);
const plan::Output *findOutput(const plan::Plan &plan, llvm::StringRef program, llvm::StringRef name);
/// How often an update step runs the program: 0 for eval, accumulate - 2 for train_middle, else 1.
uint64_t runsPerStep(const plan::Plan &plan, const plan::Program &program);
const plan::Attr *findAttr(const google::protobuf::RepeatedPtrField<plan::Attr> &attrs, llvm::StringRef name);
/// An attribute without a value yet.
plan::Attr &addAttr(plan::Command &command, llvm::StringRef name);

} // namespace shardc
