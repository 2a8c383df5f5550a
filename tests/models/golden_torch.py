# SPDX-License-Identifier: Apache-2.0
"""What PyTorch says about a model of zoo.py: losses, gradients and weights, computed in float64.

Writes, into the model's folder:
  data.safetensors    the inputs of all steps
  golden.json         loss and gradient norm of each step for each optimizer setting, in float64 and float32
  golden.safetensors  first step's logits and grad/NAME, param/NAME at the start, final/NAME after the setting "adamw"
  dropout.json        mean loss under dropout for 20 seeds (`dropout()`)
  bf16.json           losses of 20 steps (the data twice) in float64 and under autocast to bfloat16 (`autocast()`)
"""
import collections
import copy
import json
import statistics

import torch
from safetensors.torch import save_file

import zoo

ADAMW, ADAM, SGD = torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD
SETTINGS = {  # the same numbers as flags stand in tests/golden/golden.py
    "adamw": dict(make=lambda g: ADAMW(g, lr=1e-3, weight_decay=0.5)),
    "adamw-clip-linear": dict(make=lambda g: ADAMW(g, lr=3e-3, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.3),
                              clip=0.5, warmup=4, decay_all=False),
    "adam-l2": dict(make=lambda g: ADAM(g, lr=1e-3, weight_decay=0.05)),
    "sgd-momentum": dict(make=lambda g: SGD(g, lr=0.05, momentum=0.9, weight_decay=1e-2), clip=1.0),
    "sgd-nesterov": dict(make=lambda g: SGD(g, lr=0.05, momentum=0.9, nesterov=True)),
}


def loss_of(task, model, batch):
    logits = zoo.Logits(model, task)(*[batch[k] for k in zoo.inputs(task)])
    if task == "regress":
        return torch.nn.functional.mse_loss(logits, batch["labels"].to(logits.dtype)), logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), batch["labels"].flatten()), logits


def train(task, model, data, dtype, make, clip=float("inf"), warmup=None, decay_all=True, record=None, steps=zoo.STEPS, narrow=False):
    """Trains; returns losses and gradient norms. `record` receives gradients and final weights. `narrow`: autocast to bfloat16."""
    m = copy.deepcopy(model).to(dtype).train()
    named = list(m.named_parameters())
    flat = [] if decay_all else [p for _, p in named if p.dim() == 1]
    rest = [p for _, p in named if decay_all or p.dim() != 1]
    opt = make([dict(params=rest)] + ([dict(params=flat, weight_decay=0.0)] if flat else []))
    top, losses, norms = opt.param_groups[0]["lr"], [], []
    for step in range(steps):
        first = step % zoo.STEPS * zoo.BATCH
        batch = {k: v[first:first + zoo.BATCH] for k, v in data.items()}
        batch = {k: v.to(dtype) if v.is_floating_point() else v for k, v in batch.items()}
        if warmup:
            f = step / warmup if step < warmup else (steps - step) / (steps - warmup)
            for g in opt.param_groups:
                g["lr"] = top * f
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss, logits = loss_of(task, m, batch)
        opt.zero_grad()
        loss.backward()
        if step == 0 and record is not None:
            record["logits"] = logits.detach().float()
            record.update({"grad/" + n: p.grad.float().clone() for n, p in named})
        norms.append(float(torch.nn.utils.clip_grad_norm_([p for _, p in named], clip)))
        opt.step()
        losses.append(float(loss))
    if record is not None:
        record.update({"final/" + n: p.detach().float() for n, p in named})
    return losses, norms


def distance(a, b):
    return float(((a - b) ** 2).mean() ** 0.5)


def golden(name, folder):
    task, model, data = zoo.MODELS[name][0], zoo.build(name), zoo.data(name)
    save_file(data, f"{folder}/data.safetensors")
    exact = {"param/" + n: p.detach().clone() for n, p in model.named_parameters()}
    single = {}
    result = dict(steps=zoo.STEPS, batch=zoo.BATCH, src=zoo.SRC, tgt=zoo.TGT, task=task, settings={})
    for setting, options in SETTINGS.items():
        keep = setting == "adamw"
        l64, n64 = train(task, model, data, torch.float64, **options, record=exact if keep else None)
        l32, n32 = train(task, model, data, torch.float32, **options, record=single if keep else None)
        result["settings"][setting] = dict(loss64=l64, loss32=l32, gradnorm64=n64, gradnorm32=n32)
        print(name, setting, l64[0], "->", l64[-1], "float32 off by", max(abs(a - b) / b for a, b in zip(l32, l64)))
    result["final_rms_error_of_float32"] = {
        n: distance(single["final/" + n], exact["final/" + n]) / max(distance(exact["final/" + n], exact["param/" + n]), 1e-12)
        for n, _ in model.named_parameters()}
    names = collections.defaultdict(list)
    for n, p in model.named_parameters(remove_duplicate=False):
        names[p.data_ptr()].append(n)
    result["tied"] = [v for v in names.values() if len(v) > 1]
    save_file({k: v.contiguous() for k, v in exact.items()}, f"{folder}/golden.safetensors")
    with open(f"{folder}/golden.json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def dropout(name, folder, p=0.1, seeds=20):
    """Spread of PyTorch's mean loss; T5 has no dropout on attention weights here, because its exports lose it."""
    task, model, data = zoo.MODELS[name][0], zoo.build(name, p), zoo.data(name)
    for m in model.modules():
        if type(m).__name__ == "T5Attention":
            m.dropout = 0.0
    means = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        means.append(statistics.mean(train(task, model, data, torch.float32, **SETTINGS["adamw"])[0]))
    with open(f"{folder}/dropout.json", "w") as f:
        json.dump(dict(setting="adamw", dropout=p, seeds=seeds, mean=statistics.mean(means), std=statistics.stdev(means),
                       means=means), f, indent=1)
        f.write("\n")


def autocast(name, folder, steps=20):
    """How far PyTorch's own 16-bit training is from the exact one."""
    task, model, data = zoo.MODELS[name][0], zoo.build(name), zoo.data(name)
    result = dict(steps=steps, settings={})
    for setting, options in SETTINGS.items():
        exact, _ = train(task, model, data, torch.float64, **options, steps=steps)
        narrow, _ = train(task, model, data, torch.float32, **options, steps=steps, narrow=True)
        error = max(abs(a - b) / abs(b) for a, b in zip(narrow, exact))
        result["settings"][setting] = dict(loss64=exact, autocast=narrow, error=error)
        print(name, setting, "autocast off by", error)
    with open(f"{folder}/bf16.json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
