// SPDX-License-Identifier: Apache-2.0
// Small models written in C++, imported and run.
#pragma once

#include "frontend/Importer.h"
#include "ir/base/Error.h"
#include "ir/graph/Text.h"
#include "ir/graph/Verify.h"
#include "tests/frontend/Evaluate.h"
#include "tests/frontend/OnnxBuilder.h"
#include <gtest/gtest.h>

namespace shardc::test {

struct TestModel : OnnxBuilder {
  using OnnxBuilder::OnnxBuilder;

  /// Dims are numbers, or names in quotes; "?" has neither.
  void typedInput(const char *name, int type, std::initializer_list<const char *> dims) {
    onnx::ValueInfoProto *info = graph()->add_input();
    info->set_name(name);
    auto *tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (llvm::StringRef dim : dims) {
      auto *d = tensor->mutable_shape()->add_dim();
      int64_t number;
      if (!dim.getAsInteger(10, number))
        d->set_dim_value(number);
      else if (dim != "?")
        d->set_dim_param(dim.str());
    }
  }
  void floats(const char *name, std::initializer_list<const char *> dims) {
    typedInput(name, onnx::TensorProto::FLOAT, dims);
  }
  void ids(const char *name, std::initializer_list<const char *> dims) {
    typedInput(name, onnx::TensorProto::INT64, dims);
  }
  onnx::TensorProto *integers(const std::string &name, llvm::ArrayRef<int64_t> dims,
                              llvm::ArrayRef<int64_t> values) {
    onnx::TensorProto *tensor = graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->mutable_dims()->Assign(dims.begin(), dims.end());
    tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
    return tensor;
  }

  std::vector<std::string> notes;
  llvm::Expected<std::unique_ptr<Graph>> import(const ImportOptions &options) {
    opened_ = llvm::cantFail(read());
    return importOnnx(*opened_, options, &notes);
  }
  /// The graph, verified; a failure of the test otherwise.
  std::unique_ptr<Graph> graphOf(const ImportOptions &options) {
    auto made = import(options);
    if (!made) {
      ADD_FAILURE() << llvm::toString(made.takeError());
      return nullptr;
    }
    if (llvm::Error broken = verify(**made))
      ADD_FAILURE() << llvm::toString(std::move(broken)) << toString(**made);
    return std::move(*made);
  }
  /// The message of the error, without the hint; "" if there is none.
  std::string errorOf(const ImportOptions &options) {
    auto made = import(options);
    std::string message;
    if (!made)
      llvm::handleAllErrors(made.takeError(),
                            [&](const UserError &error) { message = error.text().str(); });
    return message;
  }

private:
  std::unique_ptr<OnnxModel> opened_;
};

inline void setInt(onnx::NodeProto *node, const char *name, int64_t value) {
  onnx::AttributeProto *attr = node->add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::INT);
  attr->set_i(value);
}

inline int countOps(const Graph &graph, const OpDef &def) {
  return llvm::count_if(graph.ops(), [&](const Op &op) { return op.is(def); });
}

inline const Op *findInput(const Graph &graph, llvm::StringRef name) {
  for (const Op &op : graph.ops())
    if (op.is(kInput) && op.attrs.getString("name") == name)
      return &op;
  return nullptr;
}

/// loss_sum / loss_count of a run.
inline double lossOf(const Graph &graph, const llvm::StringMap<Tensor> &given) {
  auto values = evaluateGraph(graph, given);
  if (!values) {
    ADD_FAILURE() << llvm::toString(values.takeError());
    return 0;
  }
  return (*values)[graph.output("loss_sum")].asDouble(0) /
         (*values)[graph.output("loss_count")].asDouble(0);
}

inline Tensor tensorOf(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<float> values) {
  return Tensor::of<float>(DType::F32, dims, values);
}
inline Tensor idsOf(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> values) {
  return Tensor::of<int64_t>(DType::I64, dims, values);
}

} // namespace shardc::test
