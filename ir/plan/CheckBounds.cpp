// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/base/Tensor.h"
#include "ir/plan/Check.h"
#include "ir/plan/Peak.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace llvm;

namespace shardc::check {
namespace {

constexpr int kMaxRank = 16, kMaxOperands = 4096, kMaxAttrs = 256, kMaxInts = 1 << 20;
constexpr uint32_t kMaxStreams = 16, kMaxEvents = 1 << 24, kMaxRanks = 1 << 16;
constexpr uint32_t kMaxCommunicators = 4; // 0: none

/// What sums of all commands of a plan can be made of. No NaN is.
bool isAmount(double value) { return value >= 0 && value <= 1e30; }

Error checkNumber(const Twine &what, uint64_t got, uint64_t low, uint64_t high) {
  if (got >= low && got <= high)
    return Error::success();
  return userError(what + ": got " + Twine(got) + ", wanted " + Twine(low) + " to " + Twine(high));
}

Error checkSpaces(const plan::Plan &plan) {
  std::vector<uint64_t> needed(plan.spaces_size(), 0);
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const plan::Buffer &b = plan.buffers(i);
    std::string what = describeBuffer(plan, i);
    if (b.space() >= uint32_t(plan.spaces_size()))
      return userError(what + ": no such space: got " + Twine(b.space()));
    if (!plan::BufferKind_IsValid(b.kind()))
      return userError(what + ": no such kind: got " + Twine(int(b.kind())));
    if (b.layer() >= uint32_t(plan.strings_size()))
      return userError(what + ": no such string: got " + Twine(b.layer()));
    if (b.offset() % kAlignment)
      return userError(what + ": not aligned: got offset " + Twine(b.offset()) +
                       ", wanted a multiple of " + Twine(kAlignment));
    uint64_t bytes = plan.spaces(b.space()).bytes();
    if (b.offset() > bytes || b.bytes() > bytes - b.offset())
      return userError(what + ": outside its space: got bytes [" + Twine(b.offset()) + ", +" +
                       Twine(b.bytes()) + "), wanted at most " + Twine(bytes));
    needed[b.space()] = std::max(needed[b.space()], b.offset() + b.bytes());
  }
  for (int i = 0; i < plan.spaces_size(); ++i) {
    const plan::Space &s = plan.spaces(i);
    std::string what = "space " + std::to_string(i);
    if (!plan::Space_Kind_IsValid(s.kind()))
      return userError(what + ": no such kind: got " + Twine(int(s.kind())));
    if (s.bytes() > kMaxSpaceBytes || s.bytes() != alignTo(needed[i], kAlignment))
      return userError(what + ": not the size of what is in it: got " + Twine(s.bytes()) +
                       " bytes, wanted " + Twine(alignTo(needed[i], kAlignment)));
    if (s.lower_bound() > s.bytes())
      return userError(what + ": lower bound above its size: got " + Twine(s.lower_bound()) +
                       ", wanted at most " + Twine(s.bytes()));
  }
  return Error::success();
}

Error checkRef(const plan::Plan &plan, const plan::Ref &ref, bool optional) {
  if (ref.absent()) {
    if (!optional)
      return userError("absent");
    return Error::success();
  }
  if (ref.buffer() >= uint32_t(plan.buffers_size()))
    return userError("no such buffer: got " + Twine(ref.buffer()));
  if (ref.dtype() >= kNumDTypes)
    return userError("no such element type: got " + Twine(ref.dtype()));
  if (ref.dims_size() > kMaxRank)
    return userError("too many dims: got " + Twine(ref.dims_size()) + ", wanted at most " +
                     Twine(kMaxRank));
  if (ref.strides_size() != 0 && ref.strides_size() != ref.dims_size())
    return userError("number of strides: got " + Twine(ref.strides_size()) + ", wanted " +
                     Twine(ref.dims_size()));
  std::optional<Range> bytes = touchedBytes(ref);
  uint64_t limit = plan.buffers(ref.buffer()).bytes();
  if (!bytes || bytes->end > limit)
    return userError("outside " + describeBuffer(plan, ref.buffer()) + ": got " +
                     (bytes ? "bytes [" + Twine(bytes->begin) + ", " + Twine(bytes->end) + ")"
                            : Twine("bytes below 0 or beyond 2^63")) +
                     ", wanted at most " + Twine(limit));
  if (ref.offset() % byteSize(DType(ref.dtype())))
    return userError("not aligned to its element type: got offset " + Twine(ref.offset()));
  if (uint64_t stride = ref.rank_stride()) {
    if (!elementsAreDisjoint(ref) || !isDense(ref) || numBytes(ref) != stride)
      return userError("slice of a rank: got a stride of " + Twine(stride) +
                       " bytes, wanted a dense operand of that size");
    if (stride > (limit - bytes->begin) / plan.ranks())
      return userError("slices of the ranks: outside " + describeBuffer(plan, ref.buffer()) +
                       ": got " + Twine(plan.ranks()) + " x " + Twine(stride) + " bytes from " +
                       Twine(bytes->begin) + " on, wanted at most " + Twine(limit));
  }
  return Error::success();
}

Error checkAttrs(const google::protobuf::RepeatedPtrField<plan::Attr> &attrs) {
  if (attrs.size() > kMaxAttrs)
    return userError("too many attributes: got " + Twine(attrs.size()));
  std::set<StringRef> names;
  for (const plan::Attr &attr : attrs) {
    if (attr.name().empty() || !names.insert(attr.name()).second)
      return userError("attribute without a name of its own: got '" + attr.name() + "'");
    if (attr.value_case() == plan::Attr::VALUE_NOT_SET)
      return userError("attribute " + attr.name() + " has no value");
    if (attr.has_ints() && attr.ints().v_size() > kMaxInts)
      return userError("attribute " + attr.name() + " is too long");
  }
  return Error::success();
}

Error checkCommand(const plan::Plan &plan, const plan::Command &c) {
  if (c.kernel().empty())
    return userError("no kernel");
  if (Error error = checkAttrs(c.attrs()))
    return error;
  if (c.inputs_size() > kMaxOperands || c.outputs_size() > kMaxOperands)
    return userError("too many operands");
  for (int i = 0; i < c.inputs_size(); ++i)
    if (Error error = at(checkRef(plan, c.inputs(i), /*optional=*/true),
                         [&] { return "input " + std::to_string(i); }))
      return error;
  for (int i = 0; i < c.outputs_size(); ++i)
    if (Error error = at(checkRef(plan, c.outputs(i), /*optional=*/false),
                         [&] { return "output " + std::to_string(i); }))
      return error;
  if (c.has_workspace()) {
    if (Error error = at(checkRef(plan, c.workspace(), /*optional=*/true),
                         [] { return std::string("workspace"); }))
      return error;
    if (!c.workspace().absent() && (c.workspace().dtype() != uint32_t(DType::U8) ||
                                    c.workspace().dims_size() != 1 || c.workspace().strides_size()))
      return userError("workspace: wanted bytes as u8[n]");
  }
  if (c.in_place_size() > c.outputs_size())
    return userError("in_place: got " + Twine(c.in_place_size()) + " entries");
  for (uint32_t input : c.in_place())
    if (input > uint32_t(c.inputs_size()) || (input && c.inputs(input - 1).absent()))
      return userError("in_place: no such input: got " + Twine(input));
  if (c.place() >= uint32_t(plan.strings_size()) || c.layer() >= uint32_t(plan.strings_size()))
    return userError("place or layer: no such string");
  if (Error error = checkNumber("stream", c.stream(), 0, kMaxStreams - 1))
    return error;
  if (Error error = checkNumber("phase", c.phase(), 0, 2))
    return error;
  if (Error error = checkNumber("communicator", c.communicator(), isStart(c),
                                isStart(c) ? kMaxCommunicators - 1 : 0))
    return error;
  for (auto *events : {&c.waits(), &c.signals()})
    for (uint32_t event : *events)
      if (event >= plan.events())
        return userError("no such event: got " + Twine(event));
  if (!isAmount(c.flops()) || !isAmount(c.moved_bytes()) || !isAmount(c.predicted_us()))
    return userError("cost: wanted numbers from 0 to 1e30");
  return Error::success();
}

/// The programs of a step of `accumulate` micro-steps, then eval or not.
SmallVector<StringRef> wantedPrograms(const plan::Plan &plan) {
  SmallVector<StringRef> names;
  if (plan.accumulate() == 1) {
    names = {"train"};
  } else {
    names.push_back("train_first");
    if (plan.accumulate() > 2)
      names.push_back("train_middle");
    names.push_back("train_last");
  }
  names.append({"update", "eval"});
  return names;
}

Error checkPrograms(const plan::Plan &plan) {
  SmallVector<StringRef> wanted = wantedPrograms(plan);
  bool inOrder = plan.programs_size() == int(wanted.size()) ||
                 plan.programs_size() + 1 == int(wanted.size()); // without eval
  for (int p = 0; inOrder && p < plan.programs_size(); ++p)
    inOrder = plan.programs(p).name() == wanted[p];
  if (!inOrder) {
    SmallVector<StringRef> got;
    for (const plan::Program &program : plan.programs())
      got.push_back(program.name());
    return userError("plan: programs: got '" + join(got, " ") + "', wanted '" + join(wanted, " ") +
                     "' for " + Twine(plan.accumulate()) + " micro-steps (eval may be left out)");
  }
  for (int p = 0; p < plan.programs_size(); ++p) {
    const plan::Program &program = plan.programs(p);
    for (int i = 0; i < program.commands_size(); ++i) {
      const plan::Command &c = program.commands(i);
      if (Error error = at(checkCommand(plan, c), [&] { return describe(plan, p, i); }))
        return error;
      bool training = isTraining(program);
      if (training ? c.phase() == 2 : c.phase() != (program.name() == "update" ? 2 : 0))
        return userError(describe(plan, p, i) + ": phase: got " + Twine(c.phase()) +
                         " in this program");
    }
  }
  return Error::success();
}

} // namespace

Error checkBounds(const plan::Plan &plan) {
  if (plan.strings_size() == 0 || !plan.strings(0).empty())
    return userError("plan: string 0: wanted the empty string");
  struct Count {
    const char *what;
    uint64_t got, low, high;
  };
  for (auto [what, got, low, high] :
       {Count{"plan: ranks", plan.ranks(), 1, kMaxRanks}, Count{"plan: zero", plan.zero(), 0, 3},
        Count{"plan: batch", plan.batch(), 1, uint64_t(1) << 32},
        Count{"plan: accumulate", plan.accumulate(), 1, 1 << 24},
        Count{"plan: events", plan.events(), 0, kMaxEvents},
        Count{"plan: floor_bytes", plan.floor_bytes(), 0, kMaxSpaceBytes}})
    if (Error error = checkNumber(what, got, low, high))
      return error;
  for (auto [what, value] :
       {std::pair("predicted_ms", plan.predicted_ms()), std::pair("exposed_ms", plan.exposed_ms()),
        std::pair("exposed_ms_without_prefetch", plan.exposed_ms_without_prefetch())})
    if (!isAmount(value))
      return userError(Twine("plan: ") + what + ": wanted a number from 0 to 1e30");
  if (Error error = at(checkAttrs(plan.options()), [] { return std::string("plan: options"); }))
    return error;
  if (Error error = checkSpaces(plan))
    return error;
  if (Error error = checkPrograms(plan))
    return error;
  for (const plan::Output &output : plan.outputs())
    if (Error error = at(checkRef(plan, output.ref(), /*optional=*/false),
                         [&] { return "output " + output.name(); }))
      return error;
  return Error::success();
}

} // namespace shardc::check
