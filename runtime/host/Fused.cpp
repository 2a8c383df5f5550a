// SPDX-License-Identifier: Apache-2.0
// fused(x0, x1 ...){body, outputs}: a scalar program over the elements of broadcast operands.
// Runs instruction by instruction over tiles whose registers stay in the first cache levels.
#include "ir/plan/Scalars.h"
#include "runtime/host/Dropout.h"
#include "runtime/host/FusedProgram.h"
#include "runtime/host/Parallel.h"

namespace shardc::host {
namespace {

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
  Fused(FusedProgram program, const double *scalars) : p_(std::move(program)), scalars_(scalars) {}

  void run() override {
    if (p_.size == 0)
      return;
    double work = double(p_.size) * (p_.steps.size() + p_.inputs.size() + p_.outputs.size());
    int64_t grain = work < 1 << 16 ? p_.size : p_.tile * std::max<int64_t>(1, 8192 / p_.tile);
    parallelFor(p_.size, grain, [&](int64_t begin, int64_t end, int) { runRange(begin, end); });
  }

private:
  void runRange(int64_t begin, int64_t end) const {
    alignas(64) char scratch[kScratchBytes];
    void *at[kMaxPlaces];
    for (unsigned i = 0; i < p_.slots; ++i)
      at[i] = scratch + i * p_.slotBytes;
    for (const Splat &s : p_.splats)
      fill(s, at[s.place], std::min(p_.tile, end - begin));
    for (int64_t tile = begin; tile < end; tile += p_.tile) {
      int64_t tileEnd = std::min(tile + p_.tile, end);
      for (const auto *streams : {&p_.inputs, &p_.outputs})
        for (const Stream &s : *streams)
          if (s.place >= 0)
            at[s.place] = s.data + tile * byteSize(s.dtype);
      for (const Step &step : p_.steps)
        run(step, at, tile, tileEnd);
      for (auto [place, output] : p_.stores)
        store(p_.outputs[output], tile, tileEnd, at[place]);
    }
  }

  static void fill(const Splat &s, void *to, int64_t n) {
    if (!s.data)
      return fillRegister(to, s.dtype, s.number, n);
    withBits(s.dtype, [&](auto *t) {
      using T = std::remove_pointer_t<decltype(t)>;
      std::fill_n(static_cast<T *>(to), n, *reinterpret_cast<const T *>(s.data));
    });
  }

  void run(const Step &step, void *const *at, int64_t begin, int64_t end) const {
    switch (step.kind) {
    case Step::Compute:
      return step.loop(at[step.y], at[step.a], at[step.b], at[step.c], end - begin);
    case Step::Load:
      return load(p_.inputs[step.operand], begin, end, at[step.y]);
    case Step::Keep:
      KeepMask mask(scalars_, step.ratio, step.id);
      uint64_t first =
          begin + dropoutStart(step.batchMajor, uint64_t(scalars_[kShardIndex]), p_.size);
      if (step.dtype == DType::F32)
        mask.draw(static_cast<float *>(at[step.y]), first, end - begin);
      else
        mask.draw(static_cast<double *>(at[step.y]), first, end - begin);
    }
  }

  FusedProgram p_;
  const double *scalars_;
};

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
  FusedProgram fused;
  if (!compileFused(*program, b, c, fused))
    return c.take();
  return std::make_unique<Fused>(std::move(fused), b.scalars);
}

} // namespace shardc::host
