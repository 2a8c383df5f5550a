// SPDX-License-Identifier: Apache-2.0
// Attributes of ops as those of commands.
#pragma once

#include "ir/graph/Attr.h"
#include "ir/plan/Plan.h"

namespace shardc {

/// Requires: not a tensor, which no op that runs has.
inline void addAttr(plan::Command &command, llvm::StringRef name, const Attr &value) {
  plan::Attr &attr = addAttr(command, name);
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
