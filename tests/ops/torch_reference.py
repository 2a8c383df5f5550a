#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_reference.py > TorchReference.inc: what PyTorch (float64) computes, for TorchTest.cpp.

Needs PyTorch; run by hand when cases change. Values come from a fixed seed.
"""
import torch
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def number(v):
    v = float(v)
    return repr(int(v)) + ".0" if v == int(v) and abs(v) < 1e6 else f"{v:.17g}"


def tensor(t):
    if t is None:
        return "absent()"
    t = t.detach()
    dims = ", ".join(map(str, t.shape))
    values = ", ".join(number(v) for v in t.reshape(-1).tolist())
    dtype = ", DType::I64" if t.dtype == torch.int64 else ""
    return f"given({{{dims}}}, {{{values}}}{dtype})"


def attrs(a):
    def one(v):
        if isinstance(v, list):
            return "Ints{" + ", ".join(map(str, v)) + "}"
        if isinstance(v, str):
            return f'std::string("{v}")'
        return f"int64_t({v})" if isinstance(v, int) else number(v)
    return "{" + ", ".join(f'{{"{k}", {one(v)}}}' for k, v in a.items()) + "}"


def emit(op, what, inputs, a, outputs):
    """One op: operands, attributes, results (None: not compared)."""
    print(f'{{{{&{op}, "{what}", {{{", ".join(map(tensor, inputs))}}}, {attrs(a)}}},\n {{{", ".join(map(tensor, outputs))}}}}},')


def leaf(*dims):
    return torch.randn(*dims, requires_grad=True)


def grads(y, dy, xs):
    return torch.autograd.grad((y * dy).sum(), xs)


def values():
    x = leaf(3, 5)
    dy = torch.randn(3, 5)
    for op, f in (("kSoftmax", lambda t: F.softmax(t, -1)), ("kLogSoftmax", lambda t: F.log_softmax(t, -1)),
                  ("kGelu", F.gelu), ("kGeluTanh", lambda t: F.gelu(t, approximate="tanh")),
                  ("kSoftplus", F.softplus), ("kErf", torch.erf), ("kSigmoid", torch.sigmoid),
                  ("kTanh", torch.tanh), ("kRsqrt", lambda t: torch.rsqrt(t.abs()))):
        inputs = x.abs() if op == "kRsqrt" else x
        emit(op, "torch", [inputs], {}, [f(inputs)])
    y = F.softmax(x, -1)
    emit("kSoftmaxGrad", "torch", [dy, y], {}, grads(y, dy, [x]))

    x, w, b, dy = leaf(4, 3, 6), leaf(6), leaf(6), torch.randn(4, 3, 6)
    y = F.layer_norm(x, (6,), w, b, 1e-5)
    mean = x.mean(-1)
    rstd = 1 / torch.sqrt(x.var(-1, unbiased=False) + 1e-5)
    emit("kLayerNorm", "torch", [x, w, b], {"axis": -1, "eps": 1e-5}, [y, mean, rstd])
    emit("kLayerNormGrad", "torch", [dy, x, mean, rstd, w], {"axis": -1, "affine": 1}, grads(y, dy, [x, w, b]))
    y = F.rms_norm(x, (6,), w, 1e-6)
    rstd = 1 / torch.sqrt((x * x).mean(-1) + 1e-6)
    emit("kRmsNorm", "torch", [x, w], {"axis": -1, "eps": 1e-6}, [y, rstd])
    emit("kRmsNormGrad", "torch", [dy, x, rstd, w], {"axis": -1, "affine": 1}, grads(y, dy, [x, w]))

    q, k, v, bias = leaf(2, 3, 2, 4), leaf(2, 5, 2, 4), leaf(2, 5, 2, 4), leaf(1, 2, 3, 5)
    t = lambda a: a.transpose(1, 2)
    out = t(F.scaled_dot_product_attention(t(q), t(k), t(v), attn_mask=bias.expand(2, 2, 3, 5), scale=0.5))
    lse = torch.logsumexp(0.5 * t(q) @ t(k).transpose(-1, -2) + bias, -1)
    dout = torch.randn(2, 3, 2, 4)
    emit("kAttention", "torch", [q, k, v, bias], {"scale": 0.5}, [out, lse])
    emit("kAttentionGrad", "torch", [dout, q, k, v, out, lse, bias], {"scale": 0.5, "bias_grad": 1},
         grads(out, dout, [q, k, v, bias]))

    logits, labels = leaf(5, 7), torch.tensor([3, -100, 0, 6, -100])
    loss = F.cross_entropy(logits, labels, reduction="sum", ignore_index=-100)
    kept = labels != -100
    hits = (logits.argmax(-1) == labels)[kept].sum().double()
    lse = torch.logsumexp(logits, -1)
    emit("kCrossEntropy", "torch", [logits, labels], {"ignore_index": -100}, [loss, kept.sum().double(), hits, lse])
    emit("kCrossEntropyGrad", "torch", [torch.tensor(2.0), logits, labels, lse], {"ignore_index": -100},
         grads(loss, torch.tensor(2.0), [logits]))
    table, ids = leaf(5, 3), torch.tensor([[0, 4, 4], [2, 0, 4]])
    y, dy = F.embedding(ids, table), torch.randn(2, 3, 3)
    emit("kEmbedding", "torch", [table, ids], {}, [y])
    emit("kEmbeddingGrad", "torch", [dy, ids], {"rows": 5}, grads(y, dy, [table]))
    x, ids = leaf(2, 3, 5), torch.randint(0, 5, (2, 3, 4))
    y, dy = x.gather(2, ids), torch.randn(2, 3, 4)
    emit("kGatherElements", "torch", [x, ids], {"axis": 2}, [y])
    emit("kGatherElementsGrad", "torch", [dy, ids], {"axis": 2, "size": 5}, grads(y, dy, [x]))


def distances():
    """DeBERTa's attention as transformers writes it: products with all positions, then gathers."""
    q, k, v, key, query = leaf(2, 3, 2, 4), leaf(2, 5, 2, 4), leaf(2, 5, 2, 4), leaf(7, 2, 4), leaf(7, 2, 4)
    t = lambda a: a.transpose(1, 2)
    rows = torch.arange(3)[:, None] - torch.arange(5) + 4
    to_key = (t(q) @ key.permute(1, 2, 0)).gather(-1, rows.expand(2, 2, 3, 5))
    to_query = (t(k) @ query.permute(1, 2, 0)).gather(-1, rows.T.expand(2, 2, 5, 3)).transpose(-1, -2)
    scores = 0.4 * (t(q) @ t(k).transpose(-1, -2) + to_key + to_query)
    out = t(scores.softmax(-1) @ t(v))
    lse = torch.logsumexp(scores, -1)
    dout = torch.randn(2, 3, 2, 4)
    emit("kRelativeAttention", "torch", [q, k, v, key, query], {"scale": 0.4}, [out, lse])
    emit("kRelativeAttentionGrad", "torch", [dout, q, k, v, key, query, out, lse], {"scale": 0.4},
         grads(out, dout, [q, k, v, key, query]))


def scalars(**slots):
    names = ["lr", "beta1", "beta2", "eps", "decay", "momentum", "nesterov", "c1", "c2", "max_norm", "all", "seed",
             "step", "shard", "first"]
    t = torch.zeros(32)
    for name, value in slots.items():
        t[names.index(name)] = value
    return t


def updates():
    """The third step of torch's optimizers, from the state after two."""
    for name, make, extra in (
            ("kAdamW", lambda p: torch.optim.AdamW([p], lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1), {}),
            ("kAdam", lambda p: torch.optim.Adam([p], lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1), {}),
            ("kSgd", lambda p: torch.optim.SGD([p], lr=0.01, weight_decay=0.1), {"momentum": 0.0}),
            ("kSgd", lambda p: torch.optim.SGD([p], lr=0.01, momentum=0.9, weight_decay=0.1), {"momentum": 0.9}),
            ("kSgd", lambda p: torch.optim.SGD([p], lr=0.01, momentum=0.9, weight_decay=0.1, nesterov=True),
             {"momentum": 0.9, "nesterov": 1.0})):
        p = leaf(6)
        optimizer = make(p)
        for step in range(3):
            p.grad = torch.randn(6)
            before = p.detach().clone()
            state = {k: v.clone() for k, v in optimizer.state[p].items() if torch.is_tensor(v)}
            optimizer.step()
            after = optimizer.state[p]
            what = f"step{step}" + ("Nesterov" if "nesterov" in extra else "Momentum" if extra.get("momentum") else "")
            common = [torch.tensor(0.5), None]
            if name == "kSgd":
                s = scalars(lr=0.01, decay=0.1, first=float(step == 0), **extra)
                buffers = [state.get("momentum_buffer", torch.zeros(6))] if extra["momentum"] else [None]
                results = [p] + ([after["momentum_buffer"]] if extra["momentum"] else [])
            else:
                s = scalars(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, decay=0.1, c1=1 - 0.8 ** (step + 1), c2=1 - 0.95 ** (step + 1))
                buffers = [state.get("exp_avg", torch.zeros(6)), state.get("exp_avg_sq", torch.zeros(6))]
                results = [p, after["exp_avg"], after["exp_avg_sq"]]
            # Our op scales the gradient by 1/2 itself.
            emit(name, what, [before, p.grad * 2] + buffers + [torch.tensor(0.5), s], {"decay_end": 6}, results)


def clipping():
    for what, max_norm in (("Clipped", 0.3), ("Below", 100.0)):
        a, b = torch.nn.Parameter(torch.zeros(4)), torch.nn.Parameter(torch.zeros(3))
        sums = [torch.randn(4), torch.randn(3)]  # gradients of a sum over 5
        a.grad, b.grad = sums[0] / 5, sums[1] / 5
        norm = torch.nn.utils.clip_grad_norm_([a, b], max_norm)
        emit("kGradScale", what, [torch.tensor(5.0), scalars(max_norm=max_norm), sums[0].square().sum(), sums[1].square().sum()],
             {}, [norm, a.grad[0] / sums[0][0]])


def gradients():
    """Gradients of sum(y) at kinks and ties: op, operands, attributes, gradients."""
    ties, other = torch.tensor([1.0, 2.0, 3.0, -1.0]), torch.tensor([1.0, 3.0, 3.0, -2.0])

    def of(op, what, f, xs, a={}, const=()):
        xs = [x.clone().requires_grad_(x.is_floating_point()) for x in xs]
        y = f(*xs)
        gs = [torch.autograd.grad(y.sum(), x, retain_graph=True)[0] if x.requires_grad else None for x in xs]
        inputs = [tensor(x) for x in xs] + [f"number({number(c)})" for c in const]
        outputs = [tensor(g) for g in gs] + ["absent()" for _ in const]
        print(f'{{{{&{op}, "{what}", {{{", ".join(inputs)}}}, {attrs(a)}}},\n {{{", ".join(outputs)}}}}},')

    of("kMax", "ties", torch.maximum, [ties, other])
    of("kMin", "ties", torch.minimum, [ties, other])
    of("kMax", "clamp", lambda x: x.clamp(min=2.0), [ties], const=[2.0])
    of("kMin", "clamp", lambda x: x.clamp(max=2.0), [ties], const=[2.0])
    rows = torch.tensor([[1.0, 4, 4, 2], [3, 3, 3, 3], [0, -1, 5, 2]])
    of("kReduceMax", "ties", lambda x: x.amax(1), [rows], {"axes": [1]})
    of("kReduceMin", "ties", lambda x: x.amin(1), [rows], {"axes": [1]})
    zeros = torch.tensor([[1.0, 2, 3], [0, 2, 3], [0, 2, 0]])
    of("kReduceProd", "zeros", lambda x: x.prod(1), [zeros], {"axes": [1]})
    kinks = torch.tensor([-1.5, 0.0, 2.5])
    of("kRelu", "kink", F.relu, [kinks])
    of("kAbs", "kink", torch.abs, [kinks])
    of("kSign", "kink", torch.sign, [kinks])
    of("kFloor", "kink", torch.floor, [kinks])
    of("kPow", "zeroBase", torch.pow, [torch.tensor([0.0, 0.0, 2.0, 3.0]), torch.tensor([2.0, 0.0, 0.0, 1.5])])
    of("kPow", "square", lambda x: x ** 2, [kinks], const=[2.0])
    of("kMod", "fmod", torch.fmod, [torch.tensor([5.3, -5.3]), torch.tensor([2.0, 2.1])])
    x, ids, u = torch.tensor([[1.0, 5, 2]]), torch.tensor([[0, 0, 1]]), torch.tensor([[3.0, 3, 5]])
    of("kScatterElements", "amax", lambda a, i, b: a.scatter_reduce(1, i, b, "amax"), [x, ids, u], {"axis": 1, "reduction": "max"})
    x, u = torch.tensor([[0.0, 5, 2]]), torch.tensor([[3.0, 4, 0]])
    of("kScatterElements", "prod", lambda a, i, b: a.scatter_reduce(1, i, b, "prod"), [x, ids, u], {"axis": 1, "reduction": "mul"})


print("// SPDX-License-Identifier: Apache-2.0")
print("// Made by torch_reference.py with PyTorch " + torch.__version__.split("+")[0] + ".")
print("// clang-format off")
print("static const TorchCase kTorchValues[] = {")
values()
updates()
clipping()
distances()
print("};\nstatic const TorchCase kTorchGradients[] = {")
gradients()
print("};")
