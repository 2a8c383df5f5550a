// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Plan.h"

using namespace llvm;

namespace shardc {

const plan::Program *findProgram(const plan::Plan &plan, StringRef name) {
  for (const plan::Program &program : plan.programs())
    if (program.name() == name)
      return &program;
  return nullptr;
}

const plan::Output *findOutput(const plan::Plan &plan, StringRef program, StringRef name) {
  for (const plan::Output &output : plan.outputs())
    if (output.program() == program && output.name() == name)
      return &output;
  return nullptr;
}

uint64_t runsPerStep(const plan::Plan &plan, const plan::Program &program) {
  if (program.name() == "train_middle")
    return plan.accumulate() - std::min<uint64_t>(plan.accumulate(), 2);
  return program.name() == "eval" ? 0 : 1;
}

const plan::Attr *findAttr(const google::protobuf::RepeatedPtrField<plan::Attr> &attrs,
                           StringRef name) {
  for (const plan::Attr &attr : attrs)
    if (attr.name() == name)
      return &attr;
  return nullptr;
}

plan::Attr &addAttr(plan::Command &command, llvm::StringRef name) {
  plan::Attr &attr = *command.add_attrs();
  attr.set_name(name.str());
  return attr;
}

} // namespace shardc
