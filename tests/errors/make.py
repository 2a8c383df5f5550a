# SPDX-License-Identifier: Apache-2.0
"""Makes models/*.onnx, the bad models of errors_test.py, from one good one (`good.onnx`, and `nan.onnx`, whose loss is not finite).

Needs onnx 1.19 from PyPI; the files are committed, the test does not need it.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def tensor(name, *dims):
    rng = np.random.default_rng(sum(map(ord, name)))
    return numpy_helper.from_array((rng.standard_normal(dims) * 0.3).astype(np.float32), name)


def node(op, inputs, output, **attrs):
    return helper.make_node(op, inputs, [output], name=f"/{output}/{op}", **attrs)


def model(nodes, weights, opset=17, inputs=None, outputs=None, **kw):
    graph = helper.make_graph(nodes, "g", inputs or [helper.make_tensor_value_info("ids", INT, ["batch", "seq"])],
                              outputs or [helper.make_tensor_value_info("logits", FLOAT, ["batch", 3])], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)], producer_name="make.py", **kw)


def good():
    """Token classes of 10 tokens in rows of 6, three classes."""
    return model(
        [node("Gather", ["embed.weight", "ids"], "e"), node("Add", ["e", "pos.weight"], "h"),
         node("ReduceMean", ["h"], "m", axes=[1], keepdims=0), node("Gemm", ["m", "fc.weight", "fc.bias"], "f", transB=1),
         node("Relu", ["f"], "r"), node("Gemm", ["r", "head.weight", "head.bias"], "logits", transB=1)],
        [tensor("embed.weight", 10, 4), tensor("pos.weight", 6, 4), tensor("fc.weight", 5, 4), tensor("fc.bias", 5),
         tensor("head.weight", 3, 5), tensor("head.bias", 3)])


def changed(change, base=good):
    m = base()
    change(m)
    return m


def weight(m, name):
    return next(t for t in m.graph.initializer if t.name == name)


def replaced(m, index, *nodes):
    old = list(m.graph.node)
    del m.graph.node[:]
    m.graph.node.extend(old[:index] + list(nodes) + old[index + 1:])


def external(**keys):
    def change(m):
        t = weight(m, "fc.weight")
        t.ClearField("raw_data")
        t.data_location = TensorProto.EXTERNAL
        for k, v in keys.items():
            t.external_data.add(key=k, value=str(v))
    return changed(change)


def recursive():
    """A local function that calls itself."""
    call = helper.make_node("Loop1", ["x"], ["y"], domain="local")
    f = helper.make_function("local", "Loop1", ["x"], ["y"], [call], [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])

    def change(m):
        replaced(m, 4, helper.make_node("Loop1", ["f"], ["r"], name="/r/Loop1", domain="local"))
        m.functions.append(f)
        m.opset_import.append(helper.make_opsetid("local", 1))
    return changed(change)


def unsupported(m):
    replaced(m, 4, node("Det", ["f"], "d"), helper.make_node("FusedMatMul", ["f", "fc.weight"], ["q"], name="/q/FusedMatMul",
                                                             domain="com.microsoft"), node("GridSample", ["d", "q"], "r"))
    m.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def constant(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def reshaped(*shape):
    def change(m):
        replaced(m, 4, node("Reshape", ["f", "shape"], "r"))
        m.graph.initializer.append(constant("shape", shape))
    return changed(change)


def sliced(m):
    replaced(m, 4, node("Slice", ["f", "zero", "end", "axis", "zero"], "r"))
    m.graph.initializer.extend([constant("zero", [0]), constant("end", [5]), constant("axis", [1])])


def cycle(m):
    m.graph.node[1].input[0] = "r"


def rename(initializer, to):
    return lambda m: setattr(weight(m, initializer), "name", to)


def huge(m):
    del weight(m, "fc.weight").dims[:]
    weight(m, "fc.weight").dims.extend([1 << 33, 1 << 33])


def negative(m):
    weight(m, "fc.weight").dims[0] = -5


def merged():
    """What Optimum calls decoder_model_merged: a Boolean input chooses a branch."""
    body = lambda n: helper.make_graph([node("Identity", ["f"], n)], n, [], [helper.make_tensor_value_info(n, FLOAT, None)])

    def change(m):
        replaced(m, 4, helper.make_node("If", ["use_cache_branch"], ["r"], name="/r/If", then_branch=body("a"), else_branch=body("b")))
        m.graph.input.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
    return changed(change)


def not_finite(m):
    replaced(m, 4, node("Log", ["f"], "r"))              # of a negative number


def opset(version):
    return changed(lambda m: setattr(m.opset_import[0], "version", version))


MODELS = {
    "good": good(),
    "nan": changed(not_finite),
    "opset-12": opset(12),
    "opset-99": opset(99),
    "opset-none": changed(lambda m: m.ClearField("opset_import")),
    "unsupported": changed(unsupported),
    "duplicate-initializer": changed(rename("fc.bias", "head.bias")),
    "duplicate-value": changed(lambda m: m.graph.node[3].output.__setitem__(0, "m")),
    "cycle": changed(cycle),
    "undefined": changed(lambda m: m.graph.node[4].input.__setitem__(0, "nowhere")),
    "short-data": changed(lambda m: setattr(weight(m, "fc.weight"), "raw_data", b"123")),
    "huge-dims": changed(huge),
    "negative-dim": changed(negative),
    "recursive": recursive(),
    "merged": merged(),
    "bad-reshape": reshaped(0, -1, 7),
    "bad-perm": changed(lambda m: replaced(m, 4, node("Transpose", ["f"], "r", perm=[0, 0]))),
    "bad-axis": changed(lambda m: replaced(m, 4, node("Concat", ["f", "f"], "r", axis=-99))),
    "bad-step": changed(sliced),
    "inner-sizes": changed(lambda m: replaced(m, 4, node("MatMul", ["f", "fc.bias2"], "r")) or m.graph.initializer.append(tensor("fc.bias2", 4, 5))),
    "external": external(location="weights.bin", offset=0, length=80),
    "external-parent": external(location="../weights.bin", offset=0, length=80),
    "external-absolute": external(location="/dev/zero", offset=0, length=80),
    "external-link": external(location="link.bin", offset=0, length=80),
    "external-folder-link": external(location="linked/weights.bin", offset=0, length=80),
    "external-length": external(location="weights.bin", offset=0, length=76),
    "external-past-end": external(location="weights.bin", offset=64, length=80),
    "external-negative": external(location="weights.bin", offset=-4, length=80),
    "external-garbage": external(location="weights.bin", offset="4x", length=80),
    "external-overflow": external(location="weights.bin", offset=(1 << 64) - 40, length=80),
    "external-key": external(location="weights.bin", offset=0, length=80, mode="w"),
    "external-nowhere": external(offset=0, length=80),
}

if __name__ == "__main__":
    os.makedirs(f"{HERE}/models", exist_ok=True)
    for name, m in MODELS.items():
        onnx.save(m, f"{HERE}/models/{name}.onnx")
    with open(f"{HERE}/models/not-onnx.onnx", "w") as f:
        f.write("This is no model.\n")
    whole = MODELS["good"].SerializeToString()
    with open(f"{HERE}/models/truncated.onnx", "wb") as f:
        f.write(whole[:len(whole) // 2])
    open(f"{HERE}/models/empty.onnx", "w").close()
