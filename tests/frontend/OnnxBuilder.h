// SPDX-License-Identifier: Apache-2.0
// Writes small ONNX models for tests.
#pragma once

#include "frontend/OnnxFile.h"
#include "llvm/ADT/ArrayRef.h"
#include <initializer_list>
#include <string>

namespace shardc::test {

using Names = std::initializer_list<const char *>;

inline onnx::NodeProto *addNode(google::protobuf::RepeatedPtrField<onnx::NodeProto> *nodes,
                                const char *op, Names inputs, Names outputs,
                                const std::string &name = "") {
  onnx::NodeProto *node = nodes->Add();
  node->set_op_type(op);
  for (const char *input : inputs)
    node->add_input(input);
  for (const char *output : outputs)
    node->add_output(output);
  node->set_name(name);
  return node;
}

inline void setFloats(onnx::TensorProto *tensor, const std::string &name,
                      llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<float> values) {
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->mutable_dims()->Assign(dims.begin(), dims.end());
  tensor->set_raw_data(values.data(), values.size() * sizeof(float));
}

inline void addMetadata(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto> *props,
                        const std::string &key, const std::string &value) {
  onnx::StringStringEntryProto *entry = props->Add();
  entry->set_key(key);
  entry->set_value(value);
}

inline void addExternal(onnx::TensorProto *tensor,
                        std::initializer_list<std::pair<const char *, const char *>> entries) {
  tensor->clear_raw_data();
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  for (auto [key, value] : entries)
    addMetadata(tensor->mutable_external_data(), key, value);
}

struct OnnxBuilder {
  onnx::ModelProto model;

  explicit OnnxBuilder(int opset = 17) {
    model.set_ir_version(8);
    model.set_producer_name("test");
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("g");
  }
  onnx::GraphProto *graph() { return model.mutable_graph(); }
  onnx::NodeProto *node(const char *op, Names inputs, Names outputs, const std::string &name = "") {
    return addNode(graph()->mutable_node(), op, inputs, outputs, name);
  }
  onnx::TensorProto *weight(const std::string &name, llvm::ArrayRef<int64_t> dims,
                            llvm::ArrayRef<float> values) {
    onnx::TensorProto *tensor = graph()->add_initializer();
    setFloats(tensor, name, dims, values);
    return tensor;
  }
  /// Values that differ from each other and from those of other seeds.
  onnx::TensorProto *weight(const std::string &name, llvm::ArrayRef<int64_t> dims, int seed) {
    int64_t size = 1;
    for (int64_t d : dims)
      size *= d;
    std::vector<float> values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(float(seed) + float(i) / 64);
    return weight(name, dims, values);
  }
  void input(const char *name) { graph()->add_input()->set_name(name); }
  void output(const char *name) { graph()->add_output()->set_name(name); }

  std::string bytes() const { return model.SerializeAsString(); }
  llvm::Expected<std::unique_ptr<OnnxModel>> read(llvm::StringRef path = "m.onnx") const {
    return OnnxModel::read(llvm::MemoryBuffer::getMemBufferCopy(bytes(), path));
  }
};

/// input x -> Add(x, w) -> y
inline OnnxBuilder smallModel(int opset = 17) {
  OnnxBuilder b(opset);
  b.input("x");
  b.weight("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  b.node("Add", {"x", "w"}, {"y"}, "/Add");
  b.output("y");
  return b;
}

} // namespace shardc::test
