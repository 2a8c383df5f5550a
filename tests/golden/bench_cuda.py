# SPDX-License-Identifier: Apache-2.0
"""Training steps on CUDA devices beside PyTorch, in one run on the same machine: bench_cuda.py BIN --shared DIR

BIN has the CUDA runtime; --torch (this Python by default) has torch and transformers (peers/torch_train.py of DIR). bf16, AdamW, clipping at 1,
source and target of 128 tokens, random weights; the median of the last 20 of 25 steps. PyTorch's row is the best of the modes asked for. Prints one
table; --trace DIR also keeps our times by kernel. On several GPUs (--gpus N) the batch is that of one.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import save_file

# model, batch, PyTorch's best modes as seen on one GPU, and on several
WORKS = {"t5-large-64": ("t5-large", 64, ["compile"], ["eager:ddp", "compile:ddp", "eager:fsdp2"]),
         "t5-large-16": ("t5-large", 16, ["graphs"], ["eager:ddp"]),
         "deberta-v2-xlarge-40": ("deberta-v2-xlarge", 40, ["blocks"], ["eager:ddp", "blocks:fsdp2"])}
STEPS, SKIPPED = 25, 5
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # the trained weights, a few GB, are not what is measured


def run(command, timeout=400, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exits with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def make_data(model, rows, path):
    rng = np.random.default_rng(0)
    ids = lambda vocab: rng.integers(2, vocab, (rows, 128), dtype=np.int64)
    arrays = dict(attention_mask=np.ones((rows, 128), np.int64))
    if model.startswith("t5"):
        arrays.update(input_ids=ids(32128), labels=ids(32128))
    else:
        arrays.update(input_ids=ids(128100), labels=rng.integers(0, 2, rows, dtype=np.int64))
    save_file(arrays, path)


def ours(a, model, batch, tmp, trace):
    make_data(model, batch * 10 * a.gpus, f"{tmp}/data.safetensors")
    t5 = model.startswith("t5")
    dims = f"batch={batch},src=128" + (",tgt=128" if t5 else "")
    loss = [] if t5 else ["--loss", "cross_entropy", "--logits", "logits", "--labels", "labels"]
    run([f"{a.bin}/shardc", f"{a.shared}/models/full/{model}-ts17.onnx", "-o", f"{tmp}/m.plan", "--dim", dims, *loss, "--target", "cuda",
         "--precision", "bf16", "--dropout", a.dropout, "--ranks", a.gpus, *a.compile_flags.split()])
    plan = json.loads(run([f"{a.bin}/shardc-inspect", f"{tmp}/m.plan", "--json"]))
    train = [f"{a.bin}/shardc-train", f"{tmp}/m.plan", "--data", f"{tmp}/data.safetensors", "--init-weights", "normal", "--learning-rate", "3e-5",
             "--max-grad-norm", "1", "--device", "cuda", "--quiet", *a.train_flags.split()]
    if a.gpus > 1:
        train += ["--ranks", a.gpus]
    run([*train, "--max-steps", STEPS, "--output-dir", f"{tmp}/out"])
    with open(f"{tmp}/out/log.jsonl") as f:
        times = [r["step_ms"] for r in map(json.loads, f) if "step_ms" in r]
    if trace:
        with open(f"{trace}.txt", "w") as f:
            f.write(run([*[t for t in train if t != "--quiet"], "--max-steps", 8, "--output-dir", f"{tmp}/traced", "--trace", f"{trace}.json"]))
    return statistics.median(times[SKIPPED:]), plan["peak_bytes"] / 2**30


def theirs(a, model, batch, mode):
    mode, _, dist = mode.partition(":")
    start = ["-m", "torch.distributed.run", f"--nproc_per_node={a.gpus}"] if a.gpus > 1 else []
    rows = run([a.torch, *start, f"{a.shared}/peers/torch_train.py", model, mode, "--batch", batch, "--steps", STEPS - SKIPPED, "--dropout", a.dropout,
                "--dist", dist or "none"], a.timeout, cwd=f"{a.shared}/peers")
    row = json.loads(next(line for line in rows.splitlines() if line.startswith("ROW ")).removeprefix("ROW "))
    return row["ms"], row["reserved_gib"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("--shared", required=True)
    p.add_argument("--torch", default=sys.executable)
    p.add_argument("--works", default=",".join(WORKS))
    p.add_argument("--modes", help="of PyTorch, instead of those known to be best: eager, compile, blocks, graphs; with :ddp or :fsdp2; none")
    p.add_argument("--gpus", type=int, default=1)
    p.add_argument("--dropout", type=float, default=0)
    p.add_argument("--compile-flags", default="", help="more for shardc")
    p.add_argument("--train-flags", default="", help="more for shardc-train")
    p.add_argument("--trace", metavar="DIR")
    p.add_argument("--timeout", type=float, default=400, help="seconds for one run of PyTorch")
    a = p.parse_args()
    a.bin, a.shared = os.path.abspath(a.bin), os.path.abspath(a.shared)
    print("| work | shardc ms | GiB planned | PyTorch ms | GiB reserved | mode | ratio |\n|---|---|---|---|---|---|---|", flush=True)
    failed = False
    for work in a.works.split(","):
        model, batch, one, several = WORKS[work]
        best = (float("inf"), 0, "not run")
        try:
            with tempfile.TemporaryDirectory(dir=SCRATCH) as tmp:
                ms, gib = ours(a, model, batch, tmp, a.trace and os.path.join(a.trace, work))
            modes = a.modes.split(",") if a.modes else several if a.gpus > 1 else one
            for mode in (m for m in modes if m != "none"):
                best = min(best, (*theirs(a, model, batch, mode), mode))
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            failed = True
            print(f"{work}: {e}", file=sys.stderr, flush=True)
            continue
        print(f"| {work}, {a.gpus} GPU, dropout {a.dropout} | {ms:.1f} | {gib:.2f} | {best[0]:.1f} | {best[1]:.2f} | {best[2]} | {ms / best[0]:.2f} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
