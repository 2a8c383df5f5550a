// SPDX-License-Identifier: Apache-2.0
// Runs a graph op by op with the reference functions of the op table: slow, plain, and independent
// of passes and kernels.
#pragma once

#include "frontend/OnnxFile.h"
#include "ir/graph/Graph.h"
#include "ir/ops/Reference.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

namespace shardc::test {

using Values = llvm::DenseMap<const Value *, Tensor>;

/// Every value of the graph. `given`: inputs and parameters by name. Dropout does nothing.
inline llvm::Expected<Values> evaluateGraph(const Graph &graph,
                                            const llvm::StringMap<Tensor> &given) {
  Values values;
  for (const Op &op : graph.ops()) {
    if (op.is(kInput) || op.is(kParam)) {
      auto it = given.find(op.attrs.getString("name"));
      if (it == given.end())
        return llvm::createStringError("no value for " + op.attrs.getString("name"));
      if (Type(it->second.dtype(), it->second.dims()) != op.result()->type())
        return llvm::createStringError("value for " + op.attrs.getString("name") +
                                       " has another type");
      values[op.result()] = it->second;
      continue;
    }
    llvm::SmallVector<const Tensor *> operands;
    for (const Value *operand : op.operands())
      operands.push_back(operand ? &values.find(operand)->second : nullptr);
    llvm::SmallVector<Tensor, 1> results;
    if (op.is(kDropout)) {
      results.push_back(*operands[0]);
    } else {
      auto made = evaluateOp(op, operands);
      if (!made)
        return made.takeError();
      results = std::move(*made);
    }
    for (unsigned i = 0; i < op.numResults(); ++i)
      values[op.result(i)] = results[i];
  }
  return values;
}

/// Starting values of the parameters that the model file holds, in the graph's orientation.
inline llvm::StringMap<Tensor> parameterValues(const Graph &graph) {
  llvm::StringMap<Tensor> values;
  for (const Parameter &p : graph.parameters) {
    Tensor tensor(p.type.dtype, p.type.dims);
    if (p.source.kind == ValueSource::File) {
      auto file = llvm::MemoryBuffer::getFile(p.source.file);
      if (!file) // a model that was never written
        continue;
      assert(p.source.length == uint64_t(tensor.numBytes()));
      const char *bytes = (*file)->getBufferStart() + p.source.offset;
      int64_t size = byteSize(p.type.dtype);
      if (p.source.transposed)
        for (int64_t i = 0; i < p.type.dims[0]; ++i)
          for (int64_t j = 0; j < p.type.dims[1]; ++j)
            std::memcpy(tensor.mutableData<char>() + (i * p.type.dims[1] + j) * size,
                        bytes + (j * p.type.dims[0] + i) * size, size);
      else
        std::memcpy(tensor.mutableData<char>(), bytes, p.source.length);
    }
    values[p.name] = tensor;
  }
  return values;
}

} // namespace shardc::test
