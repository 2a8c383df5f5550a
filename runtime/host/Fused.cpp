// SPDX-License-Identifier: Apache-2.0
// fused(x0, x1 ...){body, outputs}: a scalar program over the elements of broadcast operands.
// Runs instruction by instruction over tiles whose registers stay in the first cache levels.
#include "ir/plan/Scalars.h"
#include "runtime/host/Checks.h"
#include "runtime/host/Dropout.h"
#include "runtime/host/FusedLoops.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Strided.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc::host {
namespace {

constexpr int64_t kScratchBytes = 128 << 10; ///< of a thread, on its stack
constexpr int64_t kMinTile = 64, kMaxTile = 1024;
constexpr unsigned kMaxPlaces = 1024; ///< registers, direct operands and direct results

/// Where a register lives: an index into the table of addresses that each thread keeps.
using Place = int16_t;

struct Step {
  enum Kind : uint8_t { Compute, Load, Keep } kind = Compute;
  Place y = 0, a = 0, b = 0, c = 0;
  Loop loop = nullptr;
  unsigned operand = 0; ///< Load: index into inputs_
  double ratio = 0;     ///< Keep
  int64_t id = 0;       ///< Keep
  bool batchMajor = false;
  DType dtype = DType::F32;
};

struct Stream { ///< an operand or result
  char *data = nullptr;
  DType dtype = DType::F32;
  Walk walk;
  Place place =
      -1; ///< direct: the table holds addresses inside the array. -1: not used, or by steps
};

struct Splat { ///< one value in all lanes, filled once
  Place place;
  DType dtype;
  double number;
  const char *data; ///< the value is read from there, if not null
};

void load(const Stream &s, int64_t begin, int64_t end, void *to) {
  withBits(s.dtype, [&](auto *t) {
    using T = std::remove_pointer_t<decltype(t)>;
    readRuns(s.walk, reinterpret_cast<const T *>(s.data), begin, end, static_cast<T *>(to));
  });
}

void store(const Stream &s, int64_t begin, int64_t end, const void *from) {
  withBits(s.dtype, [&](auto *t) {
    using T = std::remove_pointer_t<decltype(t)>;
    writeRuns(s.walk, reinterpret_cast<T *>(s.data), begin, end, static_cast<const T *>(from));
  });
}

class Fused final : public Kernel {
public:
  llvm::Expected<bool> compile(const ScalarProgram &program, const Binding &b, Checks &c);

  void run() override {
    if (size_ == 0)
      return;
    double work = double(size_) * (steps_.size() + inputs_.size() + outputs_.size());
    int64_t grain = work < 1 << 16 ? size_ : tile_ * std::max<int64_t>(1, 8192 / tile_);
    parallelFor(size_, grain, [&](int64_t begin, int64_t end, int) { runRange(begin, end); });
  }

private:
  void runRange(int64_t begin, int64_t end) const;
  void run(const Step &step, void *const *at, int64_t begin, int64_t end) const;

  int64_t size_ = 0, tile_ = 0, slotBytes_ = 0;
  unsigned slots_ = 0; ///< places [0, slots_) are scratch
  const double *scalars_ = nullptr;
  std::vector<Step> steps_;
  std::vector<Stream> inputs_, outputs_;
  std::vector<Splat> splats_;
  llvm::SmallVector<std::pair<Place, unsigned>, 2> stores_; ///< place, output; after the steps
};

void Fused::runRange(int64_t begin, int64_t end) const {
  alignas(64) char scratch[kScratchBytes];
  void *at[kMaxPlaces];
  for (unsigned i = 0; i < slots_; ++i)
    at[i] = scratch + i * slotBytes_;
  int64_t widest = std::min(tile_, end - begin);
  for (const Splat &s : splats_) {
    if (!s.data) {
      fillRegister(at[s.place], s.dtype, s.number, widest);
      continue;
    }
    withBits(s.dtype, [&](auto *t) {
      using T = std::remove_pointer_t<decltype(t)>;
      std::fill_n(static_cast<T *>(at[s.place]), widest, *reinterpret_cast<const T *>(s.data));
    });
  }
  for (int64_t tile = begin; tile < end; tile += tile_) {
    int64_t tileEnd = std::min(tile + tile_, end);
    for (const Stream &s : inputs_)
      if (s.place >= 0)
        at[s.place] = s.data + tile * byteSize(s.dtype);
    for (const Stream &s : outputs_)
      if (s.place >= 0)
        at[s.place] = s.data + tile * byteSize(s.dtype);
    for (const Step &step : steps_)
      run(step, at, tile, tileEnd);
    for (auto [place, output] : stores_)
      store(outputs_[output], tile, tileEnd, at[place]);
  }
}

void Fused::run(const Step &step, void *const *at, int64_t begin, int64_t end) const {
  switch (step.kind) {
  case Step::Compute:
    step.loop(at[step.y], at[step.a], at[step.b], at[step.c], end - begin);
    break;
  case Step::Load:
    load(inputs_[step.operand], begin, end, at[step.y]);
    break;
  case Step::Keep: {
    KeepMask mask(scalars_, step.ratio, step.id);
    int64_t first = begin + (step.batchMajor ? int64_t(scalars_[kShardIndex]) * size_ : 0);
    if (step.dtype == DType::F32)
      mask.draw(static_cast<float *>(at[step.y]), first, end - begin);
    else
      mask.draw(static_cast<double *>(at[step.y]), first, end - begin);
    break;
  }
  }
}

/// Scratch slots, reused when what they held is dead.
struct Slots {
  llvm::SmallVector<Place, 16> free;
  unsigned count = 0;
  Place take() { return free.empty() ? fresh() : free.pop_back_val(); }
  /// One that nothing used before: for what is filled once, before the first tile.
  Place fresh() { return Place(count++); }
};

/// Number of arguments of an instruction.
unsigned arity(const ScalarInstr &instr) {
  unsigned n = 0;
  while (n < 3 && instr.args[n] >= 0)
    ++n;
  return n;
}

llvm::Expected<bool> Fused::compile(const ScalarProgram &program, const Binding &b, Checks &c) {
  const std::vector<ScalarInstr> &code = program.code;
  const size_t n = code.size();
  scalars_ = b.scalars;
  size_ = b.out[0].numElements();

  // A power with a constant exponent does not read it.
  auto powLoop = [&](size_t i) -> Loop {
    if (code[i].code != ScalarCode::Pow || code[code[i].args[1]].code != ScalarCode::Number)
      return nullptr;
    return findPowLoop(code[code[i].args[1]].number, code[i].dtype);
  };
  std::vector<size_t> lastUse(n, 0);
  std::vector<bool> used(n, false);
  for (size_t i = 0; i < n; ++i)
    for (unsigned k = 0, e = powLoop(i) ? 1 : arity(code[i]); k < e; ++k) {
      lastUse[code[i].args[k]] = i;
      used[code[i].args[k]] = true;
    }
  for (int16_t r : program.outputs) {
    lastUse[r] = n;
    used[r] = true;
  }

  for (const Array &x : b.in) {
    Dims strides;
    if (!broadcastStrides(x, b.out[0].dims, strides)) {
      c.that(false, "operand of shape " + formatDims(x.dims) + " does not broadcast to " +
                        formatDims(b.out[0].dims));
      return c.take();
    }
    inputs_.push_back({x.as<char>(), x.dtype, Walk::of(b.out[0].dims, strides)});
  }
  for (const Array &y : b.out)
    outputs_.push_back({y.as<char>(), y.dtype, Walk::of(y.dims, y.strides)});

  Slots slots;
  std::vector<Place> places(n, -1);
  std::vector<bool> scratch(n, false); // does its slot become free after the last use?
  Place nextDirect = 0;                // numbered from 0 here, moved behind the slots below
  std::vector<Place *> direct;
  auto addDirect = [&](Stream &s) {
    s.place = nextDirect++;
    return Place(-2 - s.place); // marked until the number of slots is known
  };

  // May instruction i write straight into result o? Not while an operand in that memory is needed.
  auto directOutput = [&](size_t i) -> int {
    if (code[i].code == ScalarCode::Input || code[i].code == ScalarCode::Number)
      return -1;
    for (size_t o = 0; o < program.outputs.size(); ++o) {
      if (program.outputs[o] != int16_t(i) || !outputs_[o].walk.contiguous())
        continue;
      for (size_t k = 0; k < n; ++k)
        if (code[k].code == ScalarCode::Input && used[k] && (lastUse[k] > i || k > i) &&
            overlap(b.out[o], b.in[code[k].input]))
          return -1;
      return int(o);
    }
    return -1;
  };

  for (size_t i = 0; i < n; ++i) {
    const ScalarInstr &instr = code[i];
    if (!used[i])
      continue;
    if (instr.code == ScalarCode::Number) {
      places[i] = slots.fresh();
      splats_.push_back({places[i], instr.dtype, instr.number, nullptr});
      continue;
    }
    if (instr.code == ScalarCode::Input) {
      Stream &s = inputs_[instr.input];
      if (s.walk.constant()) {
        places[i] = slots.fresh();
        splats_.push_back({places[i], s.dtype, 0, s.data});
      } else if (s.walk.contiguous()) {
        places[i] = s.place >= 0 ? Place(-2 - s.place) : addDirect(s);
      } else {
        places[i] = slots.take();
        scratch[i] = true;
        Step step;
        step.kind = Step::Load;
        step.y = places[i];
        step.operand = instr.input;
        steps_.push_back(step);
      }
      continue;
    }
    Step step;
    Place *args[] = {&step.a, &step.b, &step.c};
    step.loop = powLoop(i);
    unsigned count = step.loop ? 1 : arity(instr);
    for (unsigned k = 0; k < count; ++k)
      *args[k] = places[instr.args[k]];
    if (instr.code == ScalarCode::Keep) {
      step.kind = Step::Keep;
      step.ratio = instr.number;
      step.id = instr.input;
      step.batchMajor = instr.batchMajor;
      step.dtype = instr.dtype;
      if (!c.that(instr.dtype == DType::F32 || instr.dtype == DType::F64,
                  "keep: wanted type f32 or f64") ||
          !c.that(step.ratio >= 0 && step.ratio < 1, "keep: ratio: wanted 0 <= p < 1"))
        return c.take();
    } else if (!step.loop) {
      // Select's type is that of its arms; everything else goes by the first operand.
      DType operand = code[instr.args[0]].dtype;
      step.loop = findLoop(instr.code, operand, instr.dtype);
      if (!c.that(step.loop, "no host loop for an instruction with type " +
                                 toString(operand).str() + " and result " +
                                 toString(instr.dtype).str()))
        return c.take();
    }
    // The result may take the slot of an operand whose elements are as wide.
    auto freeOperands = [&](bool sameWidth) {
      for (unsigned k = 0; k < count; ++k) {
        int16_t arg = instr.args[k];
        bool same = byteSize(code[arg].dtype) == byteSize(instr.dtype);
        if (lastUse[arg] == i && scratch[arg] && same == sameWidth) {
          slots.free.push_back(places[arg]);
          scratch[arg] = false; // once, if it is an operand twice
        }
      }
    };
    freeOperands(/*sameWidth=*/true);
    int output = directOutput(i);
    if (output >= 0) {
      places[i] = addDirect(outputs_[output]);
    } else {
      places[i] = slots.take();
      scratch[i] = true;
    }
    freeOperands(/*sameWidth=*/false);
    step.y = places[i];
    steps_.push_back(step);
  }
  for (size_t o = 0; o < program.outputs.size(); ++o)
    if (outputs_[o].place < 0)
      stores_.push_back({places[program.outputs[o]], unsigned(o)});

  slots_ = std::max(1u, slots.count);
  auto settle = [&](Place &place) {
    if (place <= -2)
      place = Place(slots_ + (-2 - place));
  };
  for (Step &step : steps_)
    for (Place *place : {&step.y, &step.a, &step.b, &step.c})
      settle(*place);
  for (auto &entry : stores_)
    settle(entry.first);
  for (auto *streams : {&inputs_, &outputs_})
    for (Stream &s : *streams)
      if (s.place >= 0)
        s.place = Place(slots_ + s.place);

  int64_t widest = 1;
  for (const ScalarInstr &instr : code)
    widest = std::max(widest, byteSize(instr.dtype));
  // Half of a first-level cache, unless tiles become so short that the calls count.
  tile_ = std::min(kMaxTile, (48 << 10) / (slots_ * widest));
  tile_ = std::max<int64_t>(256, tile_ / kMinTile * kMinTile);
  tile_ = std::min(tile_, kScratchBytes / (slots_ * widest) / kMinTile * kMinTile);
  slotBytes_ = tile_ * widest;
  if (!c.that(tile_ >= kMinTile && slots_ + nextDirect <= kMaxPlaces,
              "body: too many values live at once"))
    return c.take();
  return true;
}

} // namespace

BoundKernel bindFused(const Binding &b) {
  Checks c(b);
  std::string body, outputs;
  if (!(c.that(!b.out.empty(), "no results") && c.stringAttr("body", body) &&
        c.stringAttr("outputs", outputs)))
    return c.take();
  llvm::SmallVector<llvm::StringRef> outputNames;
  llvm::StringRef(outputs).split(outputNames, ',');
  for (llvm::StringRef &name : outputNames)
    name = name.trim();
  if (!c.that(outputNames.size() == b.out.size(), "number of results: wanted those of 'outputs'"))
    return c.take();
  std::vector<std::string> names;
  llvm::SmallVector<llvm::StringRef> inputNames;
  llvm::SmallVector<DType> types;
  for (size_t i = 0; i < b.in.size(); ++i)
    names.push_back(("x" + llvm::Twine(i)).str());
  std::vector<std::pair<unsigned, unsigned>> inPlace;
  for (size_t i = 0; i < b.in.size(); ++i) {
    if (!c.that(bool(b.in[i]), "operand " + std::to_string(i) + " is absent"))
      return c.take();
    inputNames.push_back(names[i]);
    types.push_back(b.in[i].dtype);
    for (size_t o = 0; o < b.out.size(); ++o)
      if (b.in[i].dims == b.out[o].dims)
        inPlace.push_back({o, i});
  }
  for (const Array &y : b.out)
    if (!(c.that(bool(y), "absent result") && c.dims(y, b.out[0].dims)))
      return c.take();
  if (!c.apart(inPlace))
    return c.take();
  auto program = parseScalarProgram(body, inputNames, types, outputNames);
  if (!program) {
    c.that(false, "body: " + llvm::toString(program.takeError()));
    return c.take();
  }
  for (size_t o = 0; o < b.out.size(); ++o)
    if (!c.dtype(b.out[o], program->code[program->outputs[o]].dtype))
      return c.take();
  auto kernel = std::make_unique<Fused>();
  auto done = kernel->compile(*program, b, c);
  if (!done)
    return done.takeError();
  return kernel;
}

} // namespace shardc::host
