// SPDX-License-Identifier: Apache-2.0
// Every number of a plan, also one that is not given, set to the ends of what its type holds: the plan is refused, or any view of it can
// be printed. Works on the bytes of the plan: where a field comes twice, the last one counts.
#include "ir/plan/Check.h"
#include "tests/plan/PlanBytes.h"
#include "tests/plan/RankPlan.h"
#include "tests/plan/Views.h"
#include "llvm/Support/LEB128.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

constexpr uint64_t kExtremes[] = {0, 1, uint64_t(1) << 31, UINT32_MAX, uint64_t(1) << 48, INT64_MAX, UINT64_MAX};
constexpr unsigned kMostFields = 28; ///< of a message

std::string varint(uint64_t value) {
  std::string text;
  raw_string_ostream os(text);
  encodeULEB128(value, os);
  return text;
}

struct Field {
  StringRef content; ///< of a string or message
  size_t begin, end; ///< in its message, with tag and length
  unsigned number;
  bool hasContent;
};

/// The fields of a message; nullopt: it is none.
std::optional<std::vector<Field>> fieldsOf(StringRef message) {
  std::vector<Field> fields;
  const auto *begin = message.bytes_begin(), *end = message.bytes_end();
  for (const auto *at = begin; at != end;) {
    const char *error = nullptr;
    unsigned length = 0;
    auto read = [&] {
      uint64_t value = decodeULEB128(at, &length, end, &error);
      at += length;
      return value;
    };
    Field field{{}, size_t(at - begin), 0, 0, false};
    uint64_t tag = read(), skip = 0;
    field.number = unsigned(tag >> 3);
    if (error || tag >> 3 == 0 || tag >> 3 > kMostFields)
      return std::nullopt;
    switch (tag & 7) {
    case 0: read(); break;
    case 1: skip = 8; break;
    case 2: skip = read(), field.hasContent = true; break;
    case 5: skip = 4; break;
    default: return std::nullopt;
    }
    if (error || skip > size_t(end - at))
      return std::nullopt;
    field.content = message.substr(size_t(at - begin), skip);
    at += skip;
    field.end = size_t(at - begin);
    fields.push_back(field);
  }
  return fields;
}

/// Calls `visit` with the message, each of its fields and those of messages in it set to each extreme.
void eachExtreme(StringRef message, function_ref<void(const std::string &)> visit) {
  for (unsigned number = 1; number <= kMostFields; ++number)
    for (uint64_t value : kExtremes)
      visit(message.str() + varint(number << 3) + varint(value));
  const std::vector<Field> fields = *fieldsOf(message);
  for (const Field &field : fields)
    if (field.hasContent && !field.content.empty() && fieldsOf(field.content))
      eachExtreme(field.content, [&](const std::string &content) {
        visit((message.take_front(field.begin) + varint(field.number << 3 | 2) + varint(content.size()) + content +
               message.drop_front(field.end))
                  .str());
      });
}

void damageAll(const plan::Plan &good, unsigned stride) {
  std::string file = serializePlan(good);
  const size_t header = 20, checksum = 32;
  StringRef body = StringRef(file).drop_front(header).drop_back(checksum);
  ASSERT_TRUE(fieldsOf(body));
  unsigned seen = 0, refused = 0, sound = 0;
  eachExtreme(body, [&](const std::string &bytes) {
    if (seen++ % stride)
      return;
    plan::Plan plan;
    if (!plan.ParseFromString(bytes))
      return void(++refused);
    if (Error error = checkPlan(plan)) {
      EXPECT_NE(toString(std::move(error)), "");
      ++refused;
    } else {
      printView(plan, sound++);
    }
  });
  EXPECT_GT(refused, 100u);
  EXPECT_GT(sound, 100u); // fields that there are not, what is 0 or 1 anyway, costs
}

TEST(ExtremeNumbers, OfAPlanWithRegions) { damageAll(regionPlan(), 3); }
TEST(ExtremeNumbers, OfAPlanForSeveralRanks) { damageAll(rankPlan(2, 3, 2), 11); }
TEST(ExtremeNumbers, OfAPlanForSeveralRanksLong) { damageAll(rankPlan(2, 3, 2), 1); }

} // namespace
} // namespace shardc
