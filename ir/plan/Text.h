// SPDX-License-Identifier: Apache-2.0
// Words and numbers that everything printed about a plan shares.
#pragma once

#include "ir/plan/Plan.h"
#include <string>

namespace shardc {

/// "activation", "parameter", "gradient", "optimizer_state" ...: the spelling of text and JSON.
llvm::StringRef kindName(plan::BufferKind kind);
/// "device", "pinned_host", "host", "file".
llvm::StringRef kindName(plan::Space::Kind kind);
/// Names come out of files: what a terminal would act on is escaped, other UTF-8 is kept.
std::string printable(llvm::StringRef text);
/// "1.50 GiB": three digits, binary units; below 1 KiB "512 B".
std::string bytesText(uint64_t bytes);
/// "f32[8,128]".
std::string typeText(uint32_t dtype, const google::protobuf::RepeatedField<int64_t> &dims);
/// "60,506,624".
std::string countText(uint64_t count);
/// The shortest decimal that reads back as the same number.
std::string formatDouble(double value);

} // namespace shardc
