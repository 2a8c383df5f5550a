// SPDX-License-Identifier: Apache-2.0
// Picks slices at coordinates that the last dim of the indices holds; the first `batch_dims` dims
// are common to data and indices.
#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &data = check.in(0), &indices = check.in(1);
  check.isIndex(1);
  int64_t batch = check.integer("batch_dims", 0);
  if (batch < 0 || batch >= std::min(data.rank(), indices.rank()))
    check.fail("attribute 'batch_dims': got " + llvm::Twine(batch) + ", wanted one in [0, " +
               llvm::Twine(std::min(data.rank(), indices.rank())) + ")");
  else if (indices.dim(-1) > data.rank() - batch)
    check.fail("operand indices: got dims " + formatDims(indices.dims) +
               ", wanted a last dim of at most " + llvm::Twine(data.rank() - batch));
  else if (llvm::ArrayRef(data.dims).take_front(batch) !=
           llvm::ArrayRef(indices.dims).take_front(batch))
    check.fail("the first " + llvm::Twine(batch) + " dims differ: got " + formatDims(data.dims) +
               " and " + formatDims(indices.dims) + ", wanted equal ones");
  if (check.failed())
    return check.error();
  Dims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.append(data.dims.begin() + batch + indices.dim(-1), data.dims.end());
  return check.done({Type(data.dtype, dims)});
}

/// The coordinates of the batch, as the first entries of full coordinates: i64[indices' dims,
/// batch].
Tensor batchCoordinates(llvm::ArrayRef<int64_t> indexDims, int64_t batch) {
  Dims dims(indexDims.begin(), indexDims.end());
  dims.back() = batch;
  Tensor coordinates(DType::I64, dims);
  int64_t *out = coordinates.mutableData<int64_t>();
  int64_t tuples = numElements(indexDims.drop_back());
  Dims strides = rowMajorStrides(indexDims.drop_back());
  for (int64_t i = 0; i < tuples; ++i)
    for (int64_t k = 0; k < batch; ++k)
      *out++ = i / strides[k] % indexDims[k];
  return coordinates;
}

// Adds dy up at the same coordinates.
void gradient(GradContext &g) {
  Value *data = g.in(0), *indices = g.in(1);
  if (int64_t batch = g.attrs().getInt("batch_dims", 0)) {
    Value *rest = g.cast(indices, DType::I64);
    Value *head = g.constant(batchCoordinates(indices->type().dims, batch));
    indices = g.make(kConcat, {head, rest}, {{"axis", int64_t(-1)}});
  }
  Value *zeros = g.expand(g.scalar(data->type().dtype, 0), data->type().dims);
  g.setGrad(0, g.make(kScatterNd, {zeros, indices, g.dOut()}, {{"reduction", std::string("add")}}));
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  Tensor y(type.dtype, type.dims);
  int64_t bad = gatherNd(y.mutableData<char>(), in[0]->bytes(), in[0]->dims(),
                         indicesOf(*in[1]), in[1]->dims(),
                         op.attrs.getInt("batch_dims", 0), byteSize(type.dtype));
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "coordinates inside " + formatDims(in[0]->dims()));
  return Tensors{y};
}

constexpr const char *kOperands[] = {"data", "indices"};
constexpr OnnxRule::AttrRule kAttrs[] = {{"batch_dims", "batch_dims", 0}};

} // namespace

constinit const OpDef kGatherNd = {.mnemonic = "gather_nd",
                                   .operands = kOperands,
                                   .onnx = {"GatherND", kAttrs},
                                   .infer = infer,
                                   .gradient = gradient,
                                   .evaluate = evaluate};

} // namespace shardc
