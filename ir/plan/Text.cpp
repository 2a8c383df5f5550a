// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Text.h"
#include "llvm/Support/JSON.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cstdio>

using namespace llvm;

namespace shardc {

StringRef kindName(plan::BufferKind kind) {
  switch (kind) {
  case plan::ACTIVATION:
    return "activation";
  case plan::PARAMETER:
    return "parameter";
  case plan::GRADIENT:
    return "gradient";
  case plan::OPTIMIZER_STATE:
    return "optimizer_state";
  case plan::INPUT:
    return "input";
  case plan::WORKSPACE:
    return "workspace";
  case plan::CONSTANT:
    return "constant";
  case plan::SCALAR:
    return "scalar";
  case plan::COMMUNICATION:
    return "communication";
  default:
    return "unknown";
  }
}

StringRef kindName(plan::Space::Kind kind) {
  switch (kind) {
  case plan::Space::DEVICE:
    return "device";
  case plan::Space::PINNED_HOST:
    return "pinned_host";
  case plan::Space::HOST:
    return "host";
  case plan::Space::FILE:
    return "file";
  default:
    return "unknown";
  }
}

std::string streamName(uint32_t stream) {
  constexpr const char *kStreams[] = {"compute", "gather", "reduce", "copy"};
  return stream < std::size(kStreams) ? kStreams[stream] : "s" + utostr(stream);
}

std::string utf8(StringRef text) { return json::isUTF8(text) ? text.str() : json::fixUTF8(text); }

std::string printable(StringRef text) {
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
      out += {'\\', hexdigit(c >> 4), hexdigit(c & 15)};
    else
      out += char(c);
  }
  return out;
}

/// "1.23", "12.3", "123".
static std::string threeDigits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
  return text;
}

std::string bytesText(uint64_t bytes) {
  if (bytes < 1024)
    return utostr(bytes) + " B";
  double value = double(bytes);
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  unsigned unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return threeDigits(value) + " " + units[unit];
}

std::string percentText(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", whole > 0 ? 100 * part / whole : 0.0);
  return text;
}

std::string siText(double value, StringRef unit) {
  const char *prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  unsigned prefix = 0;
  while (value >= 999.5 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  return threeDigits(value) + " " + prefixes[prefix] + unit.str();
}

std::string durationText(double us) {
  if (us < 999.5)
    return threeDigits(us) + " us";
  if (us < 999.5e3)
    return threeDigits(us / 1e3) + " ms";
  if (us < 120e6)
    return threeDigits(us / 1e6) + " s";
  return us < 7200e6 ? threeDigits(us / 60e6) + " min" : threeDigits(us / 3600e6) + " h";
}

std::string typeText(uint32_t dtype, const google::protobuf::RepeatedField<int64_t> &dims) {
  std::string text = toString(DType(dtype)).str() + "[";
  for (int i = 0; i < dims.size(); ++i)
    text += (i ? "," : "") + itostr(dims[i]);
  return text + "]";
}

std::string countText(uint64_t count) {
  std::string text = utostr(count);
  for (int at = int(text.size()) - 3; at > 0; at -= 3)
    text.insert(size_t(at), ",");
  return text;
}

std::string attrText(const plan::Attr &attr) {
  switch (attr.value_case()) {
  case plan::Attr::kI:
    return itostr(attr.i());
  case plan::Attr::kF:
    return formatDouble(attr.f());
  case plan::Attr::kS:
    return printable(attr.s());
  default:
    break;
  }
  std::string text;
  for (int64_t v : attr.ints().v())
    text += (text.empty() ? "" : "x") + itostr(v);
  return text;
}

std::string formatDouble(double value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end);
}

} // namespace shardc
