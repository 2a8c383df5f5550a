// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/FusedProgram.h"

namespace shardc::host {
namespace {

constexpr int64_t kMinTile = 64, kMaxTile = 1024;

/// Scratch slots, reused when what they held is dead.
struct Slots {
  llvm::SmallVector<Place, 16> free;
  unsigned count = 0;
  Place take() { return free.empty() ? fresh() : free.pop_back_val(); }
  /// One that nothing used before: for what is filled once, before the first tile.
  Place fresh() { return Place(count++); }
};

class Compiler {
public:
  Compiler(const ScalarProgram &program, const Binding &b, Checks &c, FusedProgram &to)
      : program_(program), code_(program.code), b_(b), c_(c), to_(to), lastUse_(code_.size(), 0),
        used_(code_.size(), false), places_(code_.size(), -1), scratch_(code_.size(), false) {}

  bool run() {
    to_.size = b_.out[0].numElements();
    findUses();
    if (!addStreams())
      return false;
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!used_[i])
        continue;
      if (code_[i].code == ScalarCode::Number)
        addSplat(i, code_[i].number, nullptr);
      else if (code_[i].code == ScalarCode::Input)
        addInput(i);
      else if (!addStep(i))
        return false;
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o)
      if (to_.outputs[o].place < 0)
        to_.stores.push_back({places_[program_.outputs[o]], unsigned(o)});
    settlePlaces();
    return chooseTile();
  }

private:
  /// A power with a constant exponent does not read it.
  Loop powLoop(size_t i) const {
    if (code_[i].code != ScalarCode::Pow || code_[code_[i].args[1]].code != ScalarCode::Number)
      return nullptr;
    return findPowLoop(code_[code_[i].args[1]].number, code_[i].dtype);
  }

  /// How many arguments instruction i reads.
  unsigned arity(size_t i) const {
    if (powLoop(i))
      return 1;
    unsigned n = 0;
    while (n < 3 && code_[i].args[n] >= 0)
      ++n;
    return n;
  }

  void findUses() {
    for (size_t i = 0; i < code_.size(); ++i)
      for (unsigned k = 0, e = arity(i); k < e; ++k)
        use(code_[i].args[k], i);
    for (int16_t output : program_.outputs)
      use(output, code_.size());
  }
  void use(int16_t reg, size_t by) {
    lastUse_[reg] = by;
    used_[reg] = true;
  }

  bool addStreams() {
    const Dims &dims = b_.out[0].dims;
    for (const Array &x : b_.in) {
      Dims strides;
      if (!c_.that(broadcastStrides(x, dims, strides), "operand of shape " + formatDims(x.dims) +
                                                           " does not broadcast to " +
                                                           formatDims(dims)))
        return false;
      to_.inputs.push_back({x.as<char>(), x.dtype, Walk::of(dims, strides)});
    }
    for (const Array &y : b_.out)
      to_.outputs.push_back({y.as<char>(), y.dtype, Walk::of(y.dims, y.strides)});
    return true;
  }

  void addSplat(size_t i, double number, const char *data) {
    places_[i] = slots_.fresh();
    to_.splats.push_back({places_[i], code_[i].dtype, number, data});
  }

  void addInput(size_t i) {
    Stream &s = to_.inputs[code_[i].input];
    if (s.walk.constant())
      return addSplat(i, 0, s.data);
    if (s.walk.contiguous()) {
      places_[i] = direct(s);
      return;
    }
    takeSlot(i);
    Step step;
    step.kind = Step::Load;
    step.y = places_[i];
    step.operand = code_[i].input;
    to_.steps.push_back(step);
  }

  bool addStep(size_t i) {
    const ScalarInstr &instr = code_[i];
    Step step;
    Place *args[] = {&step.a, &step.b, &step.c};
    for (unsigned k = 0, e = arity(i); k < e; ++k)
      *args[k] = places_[instr.args[k]];
    if (instr.code == ScalarCode::Keep) {
      step.kind = Step::Keep;
      step.ratio = instr.number;
      step.id = instr.input;
      step.batchMajor = instr.batchMajor;
      step.dtype = instr.dtype;
      if (!c_.that(instr.dtype == DType::F32 || instr.dtype == DType::F64,
                   "keep: wanted type f32 or f64") ||
          !c_.that(step.ratio >= 0 && step.ratio < 1, "keep: ratio: wanted 0 <= p < 1"))
        return false;
    } else {
      DType operand = code_[instr.args[0]].dtype;
      step.loop = powLoop(i);
      if (!step.loop)
        step.loop = findLoop(instr.code, operand, instr.dtype);
      if (!c_.that(step.loop, "no host loop for an instruction with type " +
                                  toString(operand).str() + " and result " +
                                  toString(instr.dtype).str()))
        return false;
    }
    // The result may take the slot of an operand whose elements are as wide.
    freeOperands(i, /*sameWidth=*/true);
    int output = directOutput(i);
    if (output >= 0)
      places_[i] = direct(to_.outputs[output]);
    else
      takeSlot(i);
    freeOperands(i, /*sameWidth=*/false);
    step.y = places_[i];
    to_.steps.push_back(step);
    return true;
  }

  void takeSlot(size_t i) {
    places_[i] = slots_.take();
    scratch_[i] = true;
  }

  void freeOperands(size_t i, bool sameWidth) {
    for (unsigned k = 0, e = arity(i); k < e; ++k) {
      int16_t arg = code_[i].args[k];
      bool same = byteSize(code_[arg].dtype) == byteSize(code_[i].dtype);
      if (lastUse_[arg] == i && scratch_[arg] && same == sameWidth) {
        slots_.free.push_back(places_[arg]);
        scratch_[arg] = false; // once, if it is an operand twice
      }
    }
  }

  /// The result that instruction i may write straight into, -1 if there is none: not where an
  /// operand in that memory is still needed.
  int directOutput(size_t i) const {
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      if (program_.outputs[o] != int16_t(i) || !to_.outputs[o].walk.contiguous())
        continue;
      for (size_t k = 0; k < code_.size(); ++k)
        if (code_[k].code == ScalarCode::Input && used_[k] && (lastUse_[k] > i || k > i) &&
            overlap(b_.out[o], b_.in[code_[k].input]))
          return -1;
      return int(o);
    }
    return -1;
  }

  /// Direct places are numbered before the slots are counted: -2, -3 ... until settlePlaces.
  Place direct(Stream &s) {
    if (s.place < 0)
      s.place = directs_++;
    return Place(-2 - s.place);
  }

  void settlePlaces() {
    to_.slots = std::max(1u, slots_.count);
    auto settle = [&](Place &place) {
      if (place <= -2)
        place = Place(int(to_.slots) + (-2 - place));
    };
    for (Step &step : to_.steps)
      for (Place *place : {&step.y, &step.a, &step.b, &step.c})
        settle(*place);
    for (auto &entry : to_.stores)
      settle(entry.first);
    for (auto *streams : {&to_.inputs, &to_.outputs})
      for (Stream &s : *streams)
        if (s.place >= 0)
          s.place = Place(int(to_.slots) + s.place);
  }

  bool chooseTile() {
    int64_t widest = 1;
    for (const ScalarInstr &instr : code_)
      widest = std::max(widest, byteSize(instr.dtype));
    // Registers fill a first-level cache at most, unless tiles get so short that the calls count.
    const int64_t lane = to_.slots * widest;
    int64_t tile = std::min(kMaxTile, (48 << 10) / lane);
    tile = std::max<int64_t>(256, tile / kMinTile * kMinTile);
    to_.tile = std::min(tile, kScratchBytes / lane / kMinTile * kMinTile);
    to_.slotBytes = to_.tile * widest;
    return c_.that(to_.tile >= kMinTile && to_.slots + unsigned(directs_) <= kMaxPlaces,
                   "body: too many values live at once");
  }

  const ScalarProgram &program_;
  const std::vector<ScalarInstr> &code_;
  const Binding &b_;
  Checks &c_;
  FusedProgram &to_;
  std::vector<size_t> lastUse_; ///< by register: the last instruction that reads it
  std::vector<bool> used_;
  std::vector<Place> places_;
  std::vector<bool> scratch_; ///< does its slot become free after the last use?
  Slots slots_;
  Place directs_ = 0;
};

} // namespace

bool compileFused(const ScalarProgram &program, const Binding &b, Checks &c, FusedProgram &to) {
  return Compiler(program, b, c, to).run();
}

} // namespace shardc::host
