// SPDX-License-Identifier: Apache-2.0
#include "runtime/Calibrate.h"
#include "ir/base/Error.h"
#include "ir/plan/Scalars.h"
#include "ir/plan/Wire.h"
#include "runtime/Mix.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace shardc {
namespace {

constexpr DType kProductTypes[] = {DType::F32, DType::BF16, DType::F64};
constexpr int kGatherSizes = 5, kGathers = 4, kCommands = 400;

/// Puts the plan together; commands go to the last program, on stream 0 but for collectives.
class Writer {
public:
  explicit Writer(unsigned ranks) {
    plan_.set_version(kPlanVersion);
    plan_.set_ranks(ranks);
    plan_.set_batch(1);
    plan_.set_accumulate(1);
    plan_.add_strings("calibration");
    plan_.add_spaces();
    plan_.set_scalars_buffer(buffer("scalars", DType::F64, {kNumScalars}).buffer());
  }

  plan::Ref buffer(const char *name, DType dtype, std::initializer_list<int64_t> dims) {
    plan::Ref ref;
    ref.set_buffer(plan_.buffers_size());
    ref.set_dtype(uint32_t(dtype));
    uint64_t bytes = byteSize(dtype);
    for (int64_t dim : dims) {
      ref.add_dims(dim);
      bytes *= dim;
    }
    plan::Space &space = *plan_.mutable_spaces(0);
    plan::Buffer &buffer = *plan_.add_buffers();
    buffer.set_name(name);
    buffer.set_offset(space.bytes());
    buffer.set_bytes(bytes);
    buffer.set_persistent(true);
    space.set_bytes(llvm::alignTo(space.bytes() + bytes, kAlignment));
    return ref;
  }
  void program(const std::string &name) { plan_.add_programs()->set_name(name); }
  plan::Command &command(const char *kernel, std::initializer_list<plan::Ref> inputs,
                         std::initializer_list<plan::Ref> outputs) {
    plan::Command &command = *plan_.mutable_programs()->rbegin()->add_commands();
    command.set_kernel(kernel);
    for (const plan::Ref &ref : inputs)
      *command.add_inputs() = ref;
    for (const plan::Ref &ref : outputs)
      *command.add_outputs() = ref;
    return command;
  }
  void sum(const plan::Ref &a, const plan::Ref &b, const plan::Ref &y) {
    plan::Command &c = command("fused", {a, b}, {y});
    addAttr(c, "body").set_s("t0: f32 = x0 + x1");
    addAttr(c, "outputs").set_s("t0");
  }
  void collective(const char *kernel, const plan::Ref &input, const plan::Ref &output) {
    plan::Command &c = command(kernel, {input}, {output});
    c.set_stream(1);
    c.set_communicator(1);
    addAttr(c, "ranks").set_i(plan_.ranks());
  }
  plan::Plan take() { return std::move(plan_); }

private:
  plan::Plan plan_;
};

std::string productName(DType dtype) { return "product " + std::string(toString(dtype)); }
std::string gatherName(int size) { return "gather " + std::to_string(size); }

/// Elements of a slice, the largest last: each four times as many as the one before.
int64_t sliceElements(const CalibrationSizes &sizes, unsigned ranks, int size) {
  int64_t whole = sizes.largestGather >> (2 * (kGatherSizes - 1 - size));
  return std::max<int64_t>(64, whole / 4 / ranks / 64 * 64);
}

plan::Ref cut(plan::Ref ref, int64_t elements) {
  ref.set_dims(0, elements);
  return ref;
}

/// Numbers in [-1, 1): products of zeros are faster than those of numbers.
llvm::Error fill(Executor &executor, uint32_t buffer, DType dtype, int64_t elements) {
  const int64_t width = byteSize(dtype);
  std::vector<char> bytes(elements * width);
  for (int64_t i = 0; i < elements; ++i) {
    double value = double(mix(i)) * 0x1p-63 - 1;
    float narrow = float(value);
    if (dtype == DType::F64)
      std::memcpy(&bytes[i * width], &value, width);
    else // of bf16 the upper half
      std::memcpy(&bytes[i * width], reinterpret_cast<char *>(&narrow) + (4 - width), width);
  }
  return executor.write(buffer, 0, bytes.data(), bytes.size());
}

class Measurement {
public:
  Measurement(const CalibrationSizes &sizes, Executor &executor, Communicator &communicator)
      : sizes_(sizes), executor_(executor), communicator_(communicator) {}

  /// Seconds of the slowest rank; half of several runs took no longer.
  llvm::Expected<double> secondsOf(const std::string &program) {
    constexpr int kWarmUps = 2, kRuns = 7;
    const int index = executor_.program(program);
    std::vector<double> times;
    for (int run = 0; run < kWarmUps + kRuns; ++run) {
      if (llvm::Error e = waitForAll(communicator_))
        return e;
      auto start = std::chrono::steady_clock::now();
      if (llvm::Error e = executor_.run(index))
        return e;
      if (run >= kWarmUps)
        times.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    std::vector<double> all(communicator_.size());
    if (!communicator_.allGather(/*channel=*/0, &times[kRuns / 2], all.data(), 1, DType::F64))
      return groupError(communicator_, Exit::Fault);
    return *std::max_element(all.begin(), all.end());
  }

  llvm::Expected<MachineRates> all() {
    auto nothing = secondsOf("nothing");
    if (!nothing)
      return nothing.takeError();
    nothing_ = *nothing;
    MachineRates rates;
    const double flops = 2.0 * sizes_.rows * sizes_.columns * sizes_.inner * sizes_.products;
    const double bytes = 3.0 * 4 * sizes_.elements;
    std::pair<std::string, double *> wanted[] = {{productName(DType::F32), &rates.flops},
                                                 {productName(DType::BF16), &rates.flops16},
                                                 {productName(DType::F64), &rates.flops64},
                                                 {"sum", &rates.memoryBandwidth},
                                                 {"commands", &rates.commandUs}};
    for (auto &[program, rate] : wanted) {
      auto seconds = workOf(program);
      if (!seconds)
        return seconds.takeError();
      *rate = program == "commands" ? 1e6 * *seconds / kCommands
                                    : (program == "sum" ? bytes : flops) / *seconds;
    }
    if (communicator_.size() > 1)
      if (llvm::Error e = measureLink(rates))
        return e;
    return rates;
  }

private:
  /// Beyond that of starting a program.
  llvm::Expected<double> workOf(const std::string &program) {
    auto seconds = secondsOf(program);
    if (!seconds)
      return seconds.takeError();
    return std::max(*seconds - nothing_, 1e-9);
  }

  /// The line through the times of all sizes, in the sense of least relative squares: none counts
  /// more for being large.
  llvm::Error measureLink(MachineRates &rates) {
    double w = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int size = 0; size < kGatherSizes; ++size) {
      auto seconds = workOf(gatherName(size));
      if (!seconds)
        return seconds.takeError();
      const unsigned ranks = communicator_.size();
      const double t = *seconds / kGathers,
                   sent = double(wireBytes("all_gather_start", ranks,
                                           4 * ranks * sliceElements(sizes_, ranks, size)));
      const double weight = 1 / (t * t);
      w += weight, x += weight * sent, y += weight * t, xx += weight * sent * sent,
          xy += weight * sent * t;
    }
    const double slope = (w * xy - x * y) / (w * xx - x * x);
    rates.linkBandwidth =
        slope > 0 ? 1 / slope : xx / xy; // where noise is all there is: through zero
    rates.linkLatencyUs = std::max(0.0, 1e6 * (y - x / rates.linkBandwidth) / w);
    return measureOverlap(rates);
  }

  /// Let g be the time of products, c that of collectives, b that of both at once. While
  /// collectives run, products run s times slower: b = c + (g - c / s) where g is the longer one.
  llvm::Error measureOverlap(MachineRates &rates) {
    double times[3];
    const std::string programs[] = {productName(DType::BF16), "reductions", "both"};
    for (int i = 0; i < 3; ++i) {
      auto seconds = workOf(programs[i]);
      if (!seconds)
        return seconds.takeError();
      times[i] = *seconds;
    }
    auto [g, c, b] = times;
    const double hidden = std::min(c, g),
                 lost = std::clamp((b - std::max(g, c)) / hidden, 0.0, 0.9);
    rates.overlapSlowdown = 1 / (1 - lost);
    return llvm::Error::success();
  }

  const CalibrationSizes &sizes_;
  Executor &executor_;
  Communicator &communicator_;
  double nothing_ = 0; ///< seconds
};

} // namespace

CalibrationSizes deviceCalibrationSizes() {
  CalibrationSizes sizes;
  sizes.rows = 8192, sizes.columns = 4096, sizes.inner = 1024;
  sizes.products = 16;
  sizes.elements = 1 << 27;
  sizes.largestGather = 512 << 20;
  return sizes;
}

plan::Plan calibrationPlan(unsigned ranks, const CalibrationSizes &sizes) {
  Writer w(ranks);
  plan::Ref x = w.buffer("x", DType::F32, {sizes.elements}),
            y = w.buffer("y", DType::F32, {sizes.elements}),
            z = w.buffer("z", DType::F32, {sizes.elements});
  w.program("nothing");
  w.sum(cut(x, 1), cut(y, 1), cut(z, 1));
  w.program("commands");
  for (int i = 0; i <= kCommands; ++i)
    w.sum(cut(x, 1), cut(y, 1), cut(z, 1));
  w.program("sum");
  w.sum(x, y, z);
  auto products = [&](const plan::Ref &a, const plan::Ref &b, const plan::Ref &product) {
    for (int i = 0; i < sizes.products; ++i)
      w.command("matmul", {a, b}, {product});
  };
  plan::Ref narrow[3];
  for (DType dtype : kProductTypes) {
    plan::Ref a = w.buffer("a", dtype, {sizes.rows, sizes.inner}),
              b = w.buffer("b", dtype, {sizes.inner, sizes.columns}),
              product = w.buffer("product", dtype, {sizes.rows, sizes.columns});
    w.program(productName(dtype));
    products(a, b, product);
    if (dtype == DType::BF16)
      narrow[0] = a, narrow[1] = b, narrow[2] = product;
  }
  if (ranks == 1)
    return w.take();
  const int64_t largest = sliceElements(sizes, ranks, kGatherSizes - 1);
  plan::Ref slice = w.buffer("slice", DType::F32, {largest}),
            whole = w.buffer("whole", DType::F32, {largest * ranks});
  for (int size = 0; size < kGatherSizes; ++size) {
    const int64_t n = sliceElements(sizes, ranks, size);
    w.program(gatherName(size));
    for (int i = 0; i < kGathers; ++i)
      w.collective("all_gather_start", cut(slice, n), cut(whole, n * ranks));
  }
  const int64_t n = sliceElements(sizes, ranks, kGatherSizes - 2);
  for (bool both : {false, true}) {
    w.program(both ? "both" : "reductions");
    w.collective("reduce_scatter_start", cut(whole, n * ranks), cut(slice, n));
    if (both)
      products(narrow[0], narrow[1], narrow[2]);
  }
  return w.take();
}

llvm::Expected<MachineRates> measureMachine(const CalibrationSizes &sizes, Executor &executor,
                                            Communicator &communicator) {
  const plan::Plan plan = calibrationPlan(communicator.size(), sizes);
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &command : program.commands())
      if (command.kernel() == "matmul" && &command == &program.commands(0))
        for (const plan::Ref &ref : command.inputs())
          if (llvm::Error e =
                  fill(executor, ref.buffer(), DType(ref.dtype()), ref.dims(0) * ref.dims(1)))
            return e;
  return Measurement(sizes, executor, communicator).all();
}

} // namespace shardc
