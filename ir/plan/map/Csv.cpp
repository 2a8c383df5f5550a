// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Peak.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Map.h"
#include "ir/plan/map/Parts.h"

using namespace llvm;

namespace shardc {

/// A field that needs no quotes: MiniMalloc's reader splits at each comma.
static std::string field(StringRef text) {
  std::string out = printable(text);
  for (char &c : out)
    if (c == ',' || c == '"')
      c = '_';
  return out;
}

void printCsv(const plan::Plan &plan, uint32_t space, raw_ostream &os) {
  const uint64_t positions = Positions(plan).size();
  const map::Parts parts = map::partsOf(plan, livesOf(plan));
  os << "id,lower,upper,size,offset,kind,layer,name\n";
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const plan::Buffer &b = plan.buffers(i);
    if (b.space() != space || b.bytes() == 0 || (!b.persistent() && b.first() >= b.last()))
      continue;
    os << i << ',' << (b.persistent() ? 0 : b.first()) << ','
       << (b.persistent() ? positions : b.last()) << ',' << alignedBytes(b) << ',' << b.offset()
       << ',' << kindName(b.kind()) << ',' << field(parts.names[parts.ofBuffer[size_t(i)]]) << ','
       << field(b.name()) << '\n';
  }
}

} // namespace shardc
