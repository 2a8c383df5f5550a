# SPDX-License-Identifier: Apache-2.0
"""Makes every file in this folder that is not text: `export.py [NAME ...]` (default: all).

Needs torch 2.11, transformers 5.17, onnx 1.19, onnxscript and safetensors from PyPI; the tests need none of them.
Files of one model differ in exporter (ts = TorchScript, dyn = dynamo), opset, and whether the loss is inside (`loss`) or
only logits come out (`logits`); `folded` is exported for inference, `dropout` with dropout 0.1. See README.md.
"""
import os
import re
import sys

import onnx
import torch
from safetensors.torch import save_file

import golden_torch
import zoo

HERE = os.path.dirname(os.path.abspath(__file__))
KEEP = ("pkg.torch.onnx.fx_node", "pkg.torch.onnx.name_scopes", "graph_signature")
AXES = {"input_ids": ("batch", "src"), "attention_mask": ("batch", "src"), "decoder_input_ids": ("batch", "tgt"), "x": ("batch",)}
FILES = {  # name: exports as (exporter, opset, kind)
    "tiny-t5": [("ts", 17, "logits"), ("ts", 17, "loss"), ("dyn", 23, "loss"), ("ts", 17, "loss-dropout")],
    "tiny-deberta": [("ts", 17, "logits"), ("dyn", 18, "logits")],
    "tiny-deberta1": [("ts", 17, "logits")],
    "tiny-modernbert": [("ts", 17, "logits")],
    "tiny-llama": [("ts", 17, "logits")],
    "tiny-bert-init": [("ts", 17, "logits"), ("ts", 17, "logits-folded"), ("dyn", 18, "logits")],
    "tiny-mlp": [("ts", 17, "logits"), ("ts", 17, "loss"), ("dyn", 18, "logits")],
}


def clean(path):
    """Drops stack traces, paths and whatever else of the exporting machine an importer does not read."""
    m = onnx.load(path)

    def graph(g):
        g.doc_string = ""
        del g.value_info[:]
        for t in g.initializer:
            t.doc_string = ""
        for n in g.node:
            n.doc_string = ""
            kept = [p for p in n.metadata_props if p.key in KEEP]
            del n.metadata_props[:]
            n.metadata_props.extend(kept)
            for a in n.attribute:
                if a.HasField("g"):
                    graph(a.g)
        for v in list(g.input) + list(g.output):
            v.doc_string = ""
            del v.metadata_props[:]

    graph(m.graph)
    onnx.save(m, path)
    blob = open(path, "rb").read()
    assert not re.search(rb"/(root|tmp|home|work|opt|usr)/", blob), "path of the exporting machine in " + path
    assert len(blob) < 1 << 20, path


def export(path, model, task, data, exporter, opset, kind):
    names = zoo.inputs(task)
    loss = kind.startswith("loss")
    if loss:
        names = [n for n in names if n != "decoder_input_ids"] + ["labels"]
    label_axes = ("batch", "tgt") if task == "seq2seq" else ("batch",)
    axes = {n: dict(enumerate(AXES.get(n, label_axes))) for n in names}
    folded = kind.endswith("folded")
    model.train(not folded)
    module = (zoo.Loss if loss else zoo.Logits)(model, task)
    common = dict(input_names=names, output_names=["loss", "logits"] if loss else ["logits"], opset_version=opset)
    args = tuple(data[n][:4] for n in names)
    if exporter == "ts":
        mode = torch.onnx.TrainingMode.EVAL if folded else torch.onnx.TrainingMode.TRAINING
        torch.onnx.export(module, args, path, **common, dynamo=False, training=mode, do_constant_folding=folded, dynamic_axes=axes)
    else:
        for m in model.modules():                       # T5 without dropout fails with SDPA (a view of a strided tensor)
            if hasattr(m, "config"):
                m.config._attn_implementation = "eager"
        dim = {a: torch.export.Dim(a, min=2, max=64) for a in ("batch", "src", "tgt")}
        shapes = tuple({i: dim[a] for i, a in axes[n].items()} for n in names)
        torch.onnx.export(module, args, path, **common, dynamo=True, dynamic_shapes=(shapes,), external_data=False)
    clean(path)


def golden_model(name):
    folder = f"{HERE}/{name}"
    os.makedirs(folder, exist_ok=True)
    golden_torch.golden(name, folder)
    if name != "tiny-deberta1":  # autocast cannot run it: its mask is the lowest float, which bf16 does not have
        golden_torch.autocast(name, folder)
    for exporter, opset, kind in FILES[name]:
        drop = kind.endswith("dropout")
        export(f"{folder}/{exporter}{opset}-{kind}.onnx", zoo.build(name, 0.1 if drop else 0.0), zoo.MODELS[name][0],
               zoo.data(name), exporter, opset, kind)
        if drop:
            golden_torch.dropout(name, folder)


def reverse():
    """The demo: a T5 that learns in about a thousand steps to write short sequences backwards (see README.md)."""
    torch.manual_seed(0)
    model = zoo.t5(vocab_size=32, d_model=48, d_kv=12, d_ff=96, num_heads=4)
    model.config.use_cache = False
    train = zoo.reverse_data(3200, 1)
    save_file(train, f"{HERE}/reverse-train.safetensors")
    save_file(zoo.reverse_data(512, 2), f"{HERE}/reverse-eval.safetensors")
    export(f"{HERE}/reverse-t5.onnx", model, "seq2seq", train, "ts", 17, "loss")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [*FILES, "reverse-t5"]:
        reverse() if wanted == "reverse-t5" else golden_model(wanted)
