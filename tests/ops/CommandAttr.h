// SPDX-License-Identifier: Apache-2.0
// Attributes of ops as those of commands, for tests that make commands without the emitter.
#pragma once

#include "ir/graph/Attr.h"
#include "ir/plan/Plan.h"

namespace shardc {

/// Requires: not a tensor.
inline void addAttr(plan::Command &command, llvm::StringRef name, const Attr &value) {
  plan::Attr &attr = *command.add_attrs();
  attr.set_name(name.str());
  if (auto *i = std::get_if<int64_t>(&value))
    attr.set_i(*i);
  else if (auto *f = std::get_if<double>(&value))
    attr.set_f(*f);
  else if (auto *s = std::get_if<std::string>(&value))
    attr.set_s(*s);
  else
    for (int64_t v : (attr.mutable_ints(), std::get<Ints>(value)))
      attr.mutable_ints()->add_v(v);
}

} // namespace shardc
