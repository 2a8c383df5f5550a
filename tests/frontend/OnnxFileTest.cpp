// SPDX-License-Identifier: Apache-2.0
// What OnnxModel reads: weights in place, typed data, and the errors of a malformed graph.
#include "OnnxBuilder.h"
#include "frontend/TensorValue.h"
#include "tests/runtime/TestFiles.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

std::string errorOf(const OnnxBuilder &b) { return messageOf(b.read()); }

TEST(OnnxFile, LeavesWeightsInTheFile) {
  OnnxBuilder b = smallModel();
  b.model.set_producer_version("1.2");
  TemporaryFolder folder;
  std::string bytes = b.bytes(), path = folder.write("m.onnx", bytes);
  auto model = OnnxModel::open(path);
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  EXPECT_EQ((*model)->opset(), 17);
  EXPECT_EQ((*model)->irVersion(), 8);
  EXPECT_EQ((*model)->producer(), "test 1.2");
  EXPECT_EQ((*model)->hash().size(), 32u);
  const onnx::TensorProto *w = (*model)->initializer("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ((*model)->initializer("v"), nullptr);
  EXPECT_FALSE(w->has_raw_data());
  const TensorSource &source = (*model)->source(*w);
  EXPECT_EQ(source.state, TensorSource::State::Inline);
  EXPECT_EQ(source.dtype, DType::F32);
  EXPECT_EQ(source.dims, Dims({2, 3}));
  EXPECT_EQ(source.file, path);
  ASSERT_EQ(source.length, 24u);
  // The place in the file, and the mapped bytes, hold the same floats.
  float fromFile[6], mapped[6];
  std::memcpy(fromFile, bytes.data() + source.offset, 24);
  std::memcpy(mapped, source.data, 24);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(fromFile[i], float(i + 1));
    EXPECT_EQ(mapped[i], float(i + 1));
  }
}

TEST(OnnxFile, HashChangesWithAnyByte) {
  OnnxBuilder a = smallModel(), b = smallModel();
  b.graph()->mutable_initializer(0)->mutable_raw_data()->back() ^= 1;
  auto first = a.read(), again = a.read(), other = b.read();
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ((*first)->hash(), (*again)->hash());
  EXPECT_NE((*first)->hash(), (*other)->hash());
}

TEST(OnnxFile, PackedFloatsLieInTheFileToo) {
  OnnxBuilder b = smallModel();
  onnx::TensorProto *w = b.graph()->mutable_initializer(0);
  w->clear_raw_data();
  for (int i = 0; i < 6; ++i)
    w->add_float_data(i * 0.5f);
  auto model = b.read();
  ASSERT_TRUE(bool(model));
  const TensorSource &source = (*model)->source((*model)->graph().initializer(0));
  EXPECT_FALSE(source.file.empty());
  float last;
  std::memcpy(&last, b.bytes().data() + source.offset + 20, 4);
  EXPECT_EQ(last, 2.5f);
}

TEST(OnnxFile, ReadsTypedData) {
  OnnxBuilder b = smallModel();
  auto add = [&](const char *name, int type, int64_t size) {
    onnx::TensorProto *t = b.graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(type);
    t->add_dims(size);
    return t;
  };
  using T = onnx::TensorProto;
  T *i64 = add("i64", T::INT64, 2);
  i64->add_int64_data(-1);
  i64->add_int64_data(INT64_MAX);
  T *f16 = add("f16", T::FLOAT16, 1);
  f16->add_int32_data(0x3c00);
  T *flags = add("flags", T::BOOL, 2);
  flags->add_int32_data(0);
  flags->add_int32_data(1);
  T *f64 = add("f64", T::DOUBLE, 1);
  f64->add_double_data(0.25);
  T *nothing = add("nothing", T::INT64, 0);
  (void)nothing;
  auto model = b.read();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  auto value = [&](const char *name) {
    return llvm::cantFail(tensorValue(**model, *(*model)->initializer(name), name));
  };
  EXPECT_EQ(value("i64").ints(), (llvm::SmallVector<int64_t>{-1, INT64_MAX}));
  EXPECT_EQ(value("f16").asDouble(0), 1.0);
  EXPECT_EQ(value("flags").ints(), (llvm::SmallVector<int64_t>{0, 1}));
  EXPECT_EQ(value("f64").asDouble(0), 0.25);
  EXPECT_EQ(value("nothing").numElements(), 0);
  EXPECT_EQ((*model)->source(*(*model)->initializer("i64")).file, "");
}

TEST(OnnxFile, ABoolIsZeroOrOne) {
  OnnxBuilder b = smallModel();
  onnx::TensorProto *t = b.graph()->add_initializer();
  t->set_name("mask");
  t->set_data_type(onnx::TensorProto::BOOL);
  t->add_dims(3);
  t->set_raw_data(std::string("\0\1\7", 3));
  auto model = b.read();
  ASSERT_TRUE(bool(model));
  Tensor mask = llvm::cantFail(tensorValue(**model, *(*model)->initializer("mask"), "mask"));
  EXPECT_EQ(mask.ints(), (llvm::SmallVector<int64_t>{0, 1, 1}));
}

TEST(OnnxFile, ConstantNodes) {
  OnnxBuilder b = smallModel();
  auto constant = [&](const char *output, const char *attribute) {
    onnx::AttributeProto *a = b.node("Constant", {}, {output})->add_attribute();
    a->set_name(attribute);
    return a;
  };
  constant("a", "value_int")->set_i(-7);
  constant("b", "value_float")->set_f(0.5f);
  onnx::AttributeProto *ints = constant("c", "value_ints");
  ints->add_ints(3);
  ints->add_ints(4);
  constant("d", "value_floats")->add_floats(1.5f);
  setFloats(constant("e", "value")->mutable_t(), "", {}, {2.5f});
  constant("f", "value_string")->set_s("text");
  auto model = b.read();
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  auto value = [&](int node) { return constantValue(**model, (*model)->graph().node(node)); };
  EXPECT_EQ(llvm::cantFail(value(1)).asInt(0), -7);
  EXPECT_EQ(llvm::cantFail(value(2)).asDouble(0), 0.5);
  EXPECT_EQ(llvm::cantFail(value(3)).ints(), (llvm::SmallVector<int64_t>{3, 4}));
  EXPECT_EQ(llvm::cantFail(value(4)).dims(), llvm::ArrayRef<int64_t>({1}));
  EXPECT_EQ(llvm::cantFail(value(5)).asDouble(0), 2.5);
  EXPECT_EQ(messageOf(value(6)),
            "m.onnx: node 'f' (Constant): constant is not supported: got attribute 'value_string', "
            "wanted value, value_float, value_floats, value_int or value_ints");
}

TEST(OnnxFile, NoDataIsAShape) {
  OnnxBuilder b = smallModel();
  b.graph()->mutable_initializer(0)->clear_raw_data();
  auto model = b.read();
  ASSERT_TRUE(bool(model));
  const onnx::TensorProto &w = *(*model)->initializer("w");
  EXPECT_EQ((*model)->source(w).state, TensorSource::State::Absent);
  EXPECT_EQ((*model)->source(w).dims, Dims({2, 3}));
  EXPECT_EQ(messageOf(tensorValue(**model, w, "w")),
            "w: the values are needed but are not there (no data in the file)");
}

TEST(OnnxFile, Versions) {
  for (int opset : {13, 18, 24})
    EXPECT_EQ(errorOf(smallModel(opset)), "no error");
  EXPECT_EQ(errorOf(smallModel(12)), "m.onnx: opset is not supported: got 12, wanted 13 to 24");
  EXPECT_EQ(errorOf(smallModel(25)), "m.onnx: opset is not supported: got 25, wanted 13 to 24");
  OnnxBuilder b = smallModel();
  b.model.mutable_opset_import(0)->set_domain("ai.onnx");
  EXPECT_EQ(errorOf(b), "no error");
  b.model.add_opset_import()->set_version(18);
  EXPECT_EQ(errorOf(b), "m.onnx: the opset of the default domain is given twice");
  b.model.clear_opset_import();
  EXPECT_EQ(errorOf(b),
            "m.onnx: opset is missing: got no opset_import of the default domain, wanted 13 to 24");
}

TEST(OnnxFile, ListsCustomDomains) {
  OnnxBuilder b = smallModel();
  b.node("FusedMatMul", {"x", "w"}, {"p"})->set_domain("com.microsoft");
  b.node("Scale", {"x"}, {"q"})->set_domain("a.b");
  b.node("Relu", {"x"}, {"r"})->set_domain("ai.onnx");
  auto model = b.read();
  ASSERT_TRUE(bool(model));
  EXPECT_EQ((*model)->customDomains(), llvm::ArrayRef<std::string>({"a.b", "com.microsoft"}));
  EXPECT_EQ((*model)->graph().node(3).domain(), "");
}

TEST(OnnxFile, RefusesTensorsThatAreNotWhole) {
  auto with = [](auto change) {
    OnnxBuilder b = smallModel();
    change(*b.graph()->mutable_initializer(0));
    return errorOf(b);
  };
  using T = onnx::TensorProto;
  EXPECT_EQ(with([](T &t) { t.set_raw_data("123"); }),
            "m.onnx: initializer 'w': data has the wrong size: got 3 bytes, wanted 24 for f32 2x3");
  EXPECT_EQ(with([](T &t) { t.set_dims(0, -2); }),
            "m.onnx: initializer 'w': a dimension is negative: got -2x3, wanted sizes from 0");
  EXPECT_EQ(with([](T &t) { t.set_dims(0, INT64_MAX / 2); }),
            "m.onnx: initializer 'w': dimensions overflow: got 4611686018427387903x3, wanted at "
            "most 2^63 - "
            "1 elements");
  EXPECT_EQ(with([](T &t) { t.set_data_type(T::STRING); }),
            "m.onnx: initializer 'w': element type is not supported: got STRING, wanted FLOAT, "
            "DOUBLE, FLOAT16, BFLOAT16, INT32, INT64, UINT8 or BOOL");
  EXPECT_EQ(with([](T &t) { t.set_data_type(99); }),
            "m.onnx: initializer 'w': element type is not supported: got 99, wanted FLOAT, DOUBLE, "
            "FLOAT16, BFLOAT16, INT32, INT64, UINT8 or BOOL");
  EXPECT_EQ(with([](T &t) { t.add_int64_data(1); }),
            "m.onnx: initializer 'w': values are given twice, wanted one of raw_data, typed data "
            "and external data");
  EXPECT_EQ(with([](T &t) {
              t.clear_raw_data();
              t.add_float_data(1);
            }),
            "m.onnx: initializer 'w': data has the wrong size: got 4 bytes, wanted 24 for f32 2x3");
  EXPECT_EQ(with([](T &t) { t.mutable_segment()->set_begin(0); }),
            "m.onnx: initializer 'w': tensors in segments are not supported");
  EXPECT_EQ(with([](T &t) { t.clear_name(); }), "m.onnx: an initializer has no name");
  EXPECT_EQ(with([](T &t) {
              t.clear_raw_data();
              t.set_data_type(T::UINT8);
              t.add_int32_data(256);
            }),
            "m.onnx: initializer 'w': element 0 does not fit its type: got 256");
  // A dim of zero is legal, and has no bytes.
  EXPECT_EQ(with([](T &t) {
              t.set_dims(0, 0);
              t.clear_raw_data();
            }),
            "no error");
}

TEST(OnnxFile, RefusesSparseTensors) {
  OnnxBuilder b = smallModel();
  b.graph()->add_sparse_initializer()->mutable_values()->set_name("s");
  EXPECT_EQ(errorOf(b), "m.onnx: sparse initializer 's' is not supported");
  b = smallModel();
  onnx::AttributeProto *a = b.node("Constant", {}, {"c"})->add_attribute();
  a->set_name("sparse_value");
  a->mutable_sparse_tensor();
  EXPECT_EQ(
      errorOf(b),
      "m.onnx: node 'c' (Constant): sparse tensors are not supported (attribute 'sparse_value')");
}

TEST(OnnxFile, RefusesNegativeDimsOfInputs) {
  OnnxBuilder b = smallModel();
  b.graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->add_dim()
      ->set_dim_value(-3);
  EXPECT_EQ(errorOf(b), "m.onnx: dimension of 'x' is negative: got -3");
}

TEST(OnnxFile, LimitsNesting) {
  auto nested = [](int depth) {
    OnnxBuilder b = smallModel();
    onnx::GraphProto *graph = b.graph();
    for (int i = 1; i < depth; ++i) {
      std::string name = "n" + std::to_string(i);
      onnx::NodeProto *node = addNode(graph->mutable_node(), "If", {"x"}, {name.c_str()});
      onnx::AttributeProto *a = node->add_attribute();
      a->set_name("then_branch");
      graph = a->mutable_g();
      graph->add_output()->set_name("x");
    }
    return errorOf(b);
  };
  EXPECT_EQ(nested(32), "no error");
  EXPECT_NE(nested(33).find("graphs are nested too deeply"), std::string::npos) << nested(33);
}

TEST(OnnxFile, RefusesWhatIsNoModel) {
  auto read = [](llvm::StringRef bytes) {
    return messageOf(OnnxModel::read(llvm::MemoryBuffer::getMemBufferCopy(bytes, "m.onnx")));
  };
  EXPECT_EQ(read(""), "m.onnx: not an ONNX file: got an empty file, wanted a model");
  EXPECT_EQ(read("This is no model.\n"),
            "m.onnx: not an ONNX file: got bytes that are no message, wanted a model");
  EXPECT_EQ(read("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"),
            "m.onnx: not an ONNX file: got a Git LFS pointer");
  EXPECT_EQ(read(std::string("\x08\x08", 2)), "m.onnx: damaged: it holds no graph");
  EXPECT_EQ(read(std::string("\x12\x01z", 3)),
            "m.onnx: not an ONNX file: got bytes that are no message, wanted a model");
  std::string whole = smallModel().bytes();
  EXPECT_EQ(read(whole.substr(0, whole.size() / 2)),
            "m.onnx: truncated or damaged at byte 8: a field is longer than what holds it");
  TemporaryFolder folder;
  EXPECT_EQ(messageOf(OnnxModel::open(folder.path("none.onnx"))),
            "none.onnx: cannot be opened: No such file or directory");
  EXPECT_NE(messageOf(OnnxModel::open(folder.path(""))).find("wanted a regular file"),
            std::string::npos);
}

TEST(OnnxFile, RefusesMoreThanTwoGigabytes) {
  TemporaryFolder folder;
  std::string path = folder.write("big.onnx", "\x08\x08");
  ASSERT_EQ(truncate(path.c_str(), int64_t(1) << 31), 0); // a hole, no bytes on the disk
  EXPECT_EQ(messageOf(OnnxModel::open(path)),
            "big.onnx: larger than the 2 GiB that an ONNX file may have: got 2147483648 bytes");
}

TEST(OnnxFile, ShowsOddNamesSafely) {
  OnnxBuilder b = smallModel();
  b.weight("a\n\x1b[31m", {1}, {1});
  b.weight("a\n\x1b[31m", {1}, {1});
  EXPECT_EQ(errorOf(b),
            "m.onnx: two initializers have one name: got 'a\\0A\\1B[31m' twice, wanted unique "
            "names");
}

} // namespace
