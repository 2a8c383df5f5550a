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
/// "compute", "gather", "reduce", "copy", "s4" ...
std::string streamName(uint32_t stream);
/// Names come out of files: what a terminal would act on is escaped, other UTF-8 is kept.
std::string printable(llvm::StringRef text);
/// For files that must be UTF-8: what is none is replaced.
std::string utf8(llvm::StringRef text);
/// "1.50 GiB": three digits, binary units; below 1 KiB "512 B".
std::string bytesText(uint64_t bytes);
/// "12.3 %".
std::string percentText(double part, double whole);
/// "f32[8,128]".
std::string typeText(uint32_t dtype, const google::protobuf::RepeatedField<int64_t> &dims);
/// Three digits and a decimal prefix: "391 GFLOP", "1.81 TB".
std::string siText(double value, llvm::StringRef unit);
/// "12.3 us", "348 ms", "3.48 s", "2.6 min", "1.2 h".
std::string durationText(double microseconds);
/// "60,506,624".
std::string countText(uint64_t count);
/// The value of an option or attribute: "adamw", "4", "2x3".
std::string attrText(const plan::Attr &attr);
/// The shortest decimal that reads back as the same number.
std::string formatDouble(double value);

} // namespace shardc
