// SPDX-License-Identifier: Apache-2.0
// Random fused programs: the kernel (registers, tiles, broadcast and strided operands) gives
// exactly what the reference gives. Only operations whose result is exact by IEEE 754 are drawn.
#include "ir/ops/Reference.h"
#include "tests/ops/Harness.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

namespace {

class Programs {
public:
  explicit Programs(uint64_t seed) : state_(seed) {}

  uint32_t draw(uint32_t below) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return uint32_t(state_ >> 33) % below;
  }

  /// Operands of dims that broadcast to `dims`, then lines, then some of the lines as outputs.
  OpCase make(Dims dims) {
    OpCase c{&kFused, "Random", {}};
    names_.assign(kTypes.size(), {});
    for (unsigned i = 0, n = 1 + draw(6); i < n; ++i) {
      DType dtype = kTypes[draw(kTypes.size())];
      c.operands.push_back(operand(dtype, i == 0 ? dims : broadcast(dims)));
      names(dtype).push_back("x" + std::to_string(i));
    }
    std::string body, outputs;
    for (unsigned i = 0, n = 1 + draw(30); i < n; ++i) {
      DType dtype = kTypes[draw(kTypes.size())];
      std::string name = "t" + std::to_string(i);
      body += name + ": " + toString(dtype).str() + " = " + expression(dtype, 2) + "; ";
      names(dtype).push_back(name);
      if (i + 1 == n || draw(8) == 0)
        outputs += (outputs.empty() ? "" : ",") + name;
    }
    c.attrs = {{"body", body}, {"outputs", outputs}, {"dims", Ints(dims)}};
    return c;
  }

private:
  static constexpr std::array<DType, 5> kTypes = {DType::F32, DType::F64, DType::I64, DType::I32,
                                                  DType::Bool};

  std::vector<std::string> &names(DType dtype) {
    return names_[llvm::find(kTypes, dtype) - kTypes.begin()];
  }
  OperandSpec operand(DType dtype, Dims dims) {
    if (dtype == DType::F64)
      return {.fill = OperandSpec::Normal, .dims = dims, .wide = true};
    if (dtype == DType::F32)
      return x(dims);
    return dtype == DType::Bool ? bools(dims) : integers(dims, -9, 9, dtype);
  }
  Dims broadcast(Dims dims) {
    for (int64_t &d : dims)
      d = draw(3) == 0 ? 1 : d;
    dims.erase(dims.begin(), dims.begin() + draw(dims.size() + 1));
    return dims;
  }

  std::string leaf(DType dtype) {
    std::vector<std::string> &known = names(dtype);
    if (!known.empty() && draw(5) != 0)
      return known[draw(known.size())];
    if (dtype == DType::Bool)
      return draw(2) ? "bool(1)" : "bool(0)";
    return toString(dtype).str() + "(" + std::to_string(draw(5)) + ")";
  }

  std::string expression(DType dtype, unsigned depth) {
    if (depth == 0 || draw(4) == 0)
      return leaf(dtype);
    auto sub = [&](DType type) { return expression(type, depth - 1); };
    if (draw(6) == 0)
      return "(" + sub(DType::Bool) + " ? " + sub(dtype) + " : " + sub(dtype) + ")";
    if (draw(6) == 0 && dtype != DType::Bool)
      return toString(dtype).str() + "(" + sub(kTypes[draw(kTypes.size())]) + ")";
    if (dtype == DType::Bool) {
      static constexpr const char *kTests[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
      DType of = kTypes[draw(4)];
      if (draw(2))
        return "(" + sub(of) + kTests[draw(6)] + sub(of) + ")";
      return draw(4) == 0 ? "!" + sub(dtype)
                          : "(" + sub(dtype) + (draw(2) ? " && " : " || ") + sub(dtype) + ")";
    }
    static constexpr const char *kUnary[] = {"-", "abs", "sign"};
    static constexpr const char *kFloat[] = {"floor", "ceil", "round", "sqrt"};
    if (draw(4) == 0)
      return kUnary[draw(3)] + ("(" + sub(dtype) + ")");
    if (draw(4) == 0 && isFloat(dtype))
      return kFloat[draw(4)] + ("(" + sub(dtype) + ")");
    if (draw(3) == 0)
      return (draw(2) ? "max(" : "min(") + sub(dtype) + ", " + sub(dtype) + ")";
    static constexpr const char *kBinary[] = {" + ", " - ", " * ", " / "};
    return "(" + sub(dtype) + kBinary[draw(4)] + sub(dtype) + ")";
  }

  uint64_t state_;
  std::vector<std::vector<std::string>> names_;
};

TEST(Fused, randomProgramsEqualTheReference) {
  for (unsigned round = 0; round < 400; ++round) {
    Programs programs(round);
    OpCase c = programs.make(round % 4 == 3   ? Dims{3, 1100}
                             : round % 4 == 2 ? Dims{2, 3, 5}
                                              : Dims{7, 9});
    llvm::Expected<CaseGraph> g = buildCase(c, DType::F32);
    ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError()) << c.attrs.getString("body").str();
    llvm::SmallVector<const Tensor *> operands;
    for (Value *value : g->op->operands())
      operands.push_back(&g->feeds[value]);
    llvm::Expected<Tensors> wanted = evaluateOp(*g->op, operands);
    ASSERT_TRUE(bool(wanted)) << llvm::toString(wanted.takeError());
    for (RunOp run : {runKernel, runStridedKernel}) {
      llvm::Expected<Tensors> got = run(*g->op, operands);
      ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError()) << c.attrs.getString("body").str();
      for (unsigned i = 0; i < wanted->size(); ++i)
        ASSERT_EQ(compare((*got)[i], (*wanted)[i], 0), "")
            << "result " << i << " of " << c.attrs.getString("outputs").str() << "\n"
            << c.attrs.getString("body").str();
    }
  }
}

} // namespace
