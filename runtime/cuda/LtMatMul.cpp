// SPDX-License-Identifier: Apache-2.0
// The library is column-major: y^T = b^T a^T, so that its first operand is our b, its second our a, its rows our n.
#include "runtime/cuda/LtMatMul.h"
#include "ir/base/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <utility>

namespace shardc::cuda {
namespace {

cudaDataType_t dataType(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return CUDA_R_64F;
  case DType::F16:
    return CUDA_R_16F;
  case DType::BF16:
    return CUDA_R_16BF;
  default:
    return CUDA_R_32F;
  }
}

/// A matrix as the library sees it: `rows` x `columns`, column-major with `leading` elements from column to column.
struct View {
  int64_t rows, columns, leading;
  cublasOperation_t operation;
};

/// Of rows x columns elements at i * row + j * column; seen transposed where the rows are dense. A stride along a dim
/// of 1 is free.
std::optional<View> viewOf(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1))
    return View{rows, columns, columns == 1 ? rows : column, CUBLAS_OP_N};
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1))
    return View{columns, rows, rows == 1 ? columns : row, CUBLAS_OP_T};
  return std::nullopt;
}

llvm::Error makeLayout(cublasLtMatrixLayout_t &layout, DType dtype, const View &view, int64_t batch, int64_t stride) {
  if (auto error = check(cublasLtMatrixLayoutCreate(&layout, dataType(dtype), view.rows, view.columns, view.leading),
                         "cublasLtMatrixLayoutCreate"))
    return error;
  if (batch == 1)
    return llvm::Error::success();
  const int32_t count = batch;
  if (auto error =
          check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
                "cublasLtMatrixLayoutSetAttribute"))
    return error;
  return check(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
      "cublasLtMatrixLayoutSetAttribute");
}

struct Preference {
  cublasLtMatmulPreference_t handle = nullptr;
  ~Preference() {
    if (handle)
      cublasLtMatmulPreferenceDestroy(handle);
  }
  template <typename T> llvm::Error set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    return check(cublasLtMatmulPreferenceSetAttribute(handle, attribute, &value, sizeof(value)),
                 "cublasLtMatmulPreferenceSetAttribute");
  }
};

} // namespace

std::string Problem::describe() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << batch << " x " << m << "x" << n << "x" << k << " of " << toString(in) << " in " << toString(out);
  os << ", a " << rowA << ":" << columnA << ":" << strideA << " b " << rowB << ":" << columnB << ":" << strideB << " y "
     << strideY;
  os << (addsC ? inPlace ? " +=" : " +c" : "") << (addsBias ? " +bias" : "") << (relu ? " relu" : "") << (tf32 ? " tf32" : "");
  os << ", aligned " << alignA << " " << alignB << " " << alignY;
  return text;
}

llvm::Error LtProduct::open(const void *bias) {
  const Problem &p = problem_;
  // b^T is n x k and stands at j * columnB + l * rowB; a^T is k x m.
  std::optional<View> first = viewOf(p.n, p.k, p.columnB, p.rowB), second = viewOf(p.k, p.m, p.columnA, p.rowA);
  if (!first || !second)
    return userError(std::string("layout of operand ") + (first ? "a" : "b") +
                     ": wanted stride 1 in one of the last two dims, and rows that do not overlap");
  const cublasComputeType_t compute = p.in == DType::F64             ? CUBLAS_COMPUTE_64F
                                      : p.in == DType::F32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                     : CUBLAS_COMPUTE_32F;
  if (auto error = check(cublasLtMatmulDescCreate(&product_, compute, p.in == DType::F64 ? CUDA_R_64F : CUDA_R_32F),
                         "cublasLtMatmulDescCreate"))
    return error;
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
    return check(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof(value)),
                 "cublasLtMatmulDescSetAttribute");
  };
  if (auto error = set(CUBLASLT_MATMUL_DESC_TRANSA, first->operation))
    return error;
  if (auto error = set(CUBLASLT_MATMUL_DESC_TRANSB, second->operation))
    return error;
  if (auto error = set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.addsBias ? p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS
                                                      : p.relu   ? CUBLASLT_EPILOGUE_RELU
                                                                 : CUBLASLT_EPILOGUE_DEFAULT))
    return error;
  if (hidesFactors())
    if (auto error = set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE))
      return error;
  if (p.addsBias) {
    if (auto error = set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(dataType(p.in))))
      return error;
    if (auto error = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias))
      return error;
  }
  if (auto error = makeLayout(first_, p.in, *first, p.batch, p.strideB))
    return error;
  if (auto error = makeLayout(second_, p.in, *second, p.batch, p.strideA))
    return error;
  return makeLayout(result_, p.out, View{p.n, p.m, p.n, CUBLAS_OP_N}, p.batch, p.strideY);
}

/// What the library would like to have. Offered less it puts others first, also where the first needs hardly any, and sums of
/// many terms are less exact.
constexpr uint64_t kLikedWorkspace = 32 << 20;

llvm::Expected<std::vector<cublasLtMatmulAlgo_t>> LtProduct::algorithmsFor(uint64_t offered, int most) const {
  const Problem &p = problem_;
  Preference preference;
  if (auto error = check(cublasLtMatmulPreferenceCreate(&preference.handle), "cublasLtMatmulPreferenceCreate"))
    return error;
  // Parts of a sum that are added in a fixed order, in the type of the sum.
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (auto error = preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, offered))
    return error;
  if (auto error = preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes))
    return error;
  for (auto [attribute, bytes] : {std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.alignB),
                                  std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.alignA),
                                  std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.alignY),
                                  std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.alignY)})
    if (auto error = preference.set(attribute, uint32_t(bytes)))
      return error;
  std::vector<cublasLtMatmulHeuristicResult_t> answers(most);
  int found = 0;
  if (auto error = check(cublasLtMatmulAlgoGetHeuristic(blas_, product_, first_, second_, result_, result_,
                                                        preference.handle, most, answers.data(), &found),
                         "cublasLtMatmulAlgoGetHeuristic"))
    return error;
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t &answer : llvm::ArrayRef(answers).take_front(found))
    if (answer.state == CUBLAS_STATUS_SUCCESS && answer.workspaceSize <= size_t(kProductWorkspace))
      algorithms.push_back(answer.algo);
  return algorithms;
}

llvm::Expected<std::vector<cublasLtMatmulAlgo_t>> LtProduct::algorithms(int most) const {
  auto algorithms = algorithmsFor(kProductWorkspace, most);
  if (algorithms && algorithms->empty())
    return userError("cuBLASLt knows no algorithm for this product");
  return algorithms;
}

llvm::Expected<cublasLtMatmulAlgo_t> LtProduct::firstAlgorithm() const {
  auto algorithms = algorithmsFor(kLikedWorkspace, 1);
  if (algorithms && algorithms->empty())
    algorithms = this->algorithms(1);
  if (!algorithms)
    return algorithms.takeError();
  return algorithms->front();
}

bool LtProduct::takes(const cublasLtMatmulAlgo_t &algorithm) const {
  cublasLtMatmulHeuristicResult_t answer = {};
  uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_INPLACE;
  return cublasLtMatmulAlgoCheck(blas_, product_, first_, second_, result_, result_, &algorithm, &answer) ==
             CUBLAS_STATUS_SUCCESS &&
         answer.workspaceSize <= size_t(kProductWorkspace) &&
         cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof(scheme),
                                              nullptr) == CUBLAS_STATUS_SUCCESS &&
         (scheme == CUBLASLT_REDUCTION_SCHEME_NONE || scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

llvm::Expected<int64_t> LtProduct::workspaceBytes() const {
  cublasLtMatmulHeuristicResult_t answer = {};
  if (auto error = check(
          cublasLtMatmulAlgoCheck(blas_, product_, first_, second_, result_, result_, &algorithm_, &answer),
          "cublasLtMatmulAlgoCheck"))
    return error;
  return int64_t(answer.workspaceSize);
}

llvm::Expected<LtProduct> LtProduct::of(const Problem &problem, const void *bias, Device &device,
                                        llvm::StringRef place) {
  LtProduct made;
  made.problem_ = problem;
  made.blas_ = device.blas();
  made.one_ = device.one();
  llvm::Error error = made.open(bias);
  if (!error) {
    if (auto first = made.firstAlgorithm())
      made.algorithm_ = *first;
    else
      error = first.takeError();
  }
  if (error)
    return userError(place + ": matmul: " + llvm::toString(std::move(error)));
  return made;
}

LtProduct::LtProduct(LtProduct &&other)
    : problem_(other.problem_), blas_(other.blas_), one_(other.one_), product_(std::exchange(other.product_, nullptr)),
      first_(std::exchange(other.first_, nullptr)), second_(std::exchange(other.second_, nullptr)),
      result_(std::exchange(other.result_, nullptr)), algorithm_(other.algorithm_) {}

LtProduct::~LtProduct() {
  for (cublasLtMatrixLayout_t layout : {first_, second_, result_})
    if (layout)
      cublasLtMatrixLayoutDestroy(layout);
  if (product_)
    cublasLtMatmulDescDestroy(product_);
}

llvm::Error LtProduct::run(const Operands &o, void *workspace, cudaStream_t stream, int64_t bytes) const {
  const bool wide = problem_.in == DType::F64;
  const float one = 1, beta = problem_.addsC ? 1 : 0;
  const double wideOne = 1, wideBeta = beta;
  const void *alphaAt = wide ? static_cast<const void *>(&wideOne) : &one,
             *betaAt = wide ? static_cast<const void *>(&wideBeta) : &beta;
  if (hidesFactors())
    alphaAt = betaAt = one_;
  return check(cublasLtMatmul(blas_, product_, alphaAt, o.b, first_, o.a, second_, betaAt,
                              problem_.addsC ? o.c : o.d, result_, o.d, result_, &algorithm_, workspace,
                              size_t(bytes), stream),
               "cublasLtMatmul");
}

} // namespace shardc::cuda
