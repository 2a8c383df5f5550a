# SPDX-License-Identifier: Apache-2.0
"""Compiles and trains exported models and compares every step with what PyTorch computed in float64.

    golden.py BIN FOLDER... [--only TEXT] [--settings A,B] [--ranks 1,2 --zero 0,3 --accumulate 1,2] [--device cuda] [-v]

A FOLDER holds *.onnx, data.safetensors, golden.json and golden.safetensors as tests/models/golden_torch.py makes them.
Losses must agree to --rtol, gradient norms to 1e-4; for the setting "adamw" also each parameter's first gradient and its
value at the end. With --device cuda ranks share the first GPU; with --processes each is a process with a GPU of its own. Exit code 0: all agree; 77: a FOLDER is missing, or numpy or safetensors is.
"""
import argparse
import glob
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

try:
    import numpy as np
    from safetensors.numpy import load_file
except ImportError as e:
    print(f"skipped: {e}; tools/setup.sh makes an environment that has it")
    sys.exit(77)

CONSTANT = "--lr-scheduler-type constant --max-grad-norm 0 "
SETTINGS = {  # the same numbers as constructors stand in tests/models/golden_torch.py
    "adamw": ("adamw", CONSTANT + "--learning-rate 1e-3 --weight-decay 0.5 --decay-all"),
    "adamw-clip-linear": ("adamw", "--learning-rate 3e-3 --adam-beta2 0.98 --adam-epsilon 1e-6 --weight-decay 0.3 "
                                   "--max-grad-norm 0.5 --lr-scheduler-type linear --warmup-steps 4"),
    "adam-l2": ("adam", CONSTANT + "--learning-rate 1e-3 --weight-decay 0.05 --decay-all"),
    "sgd-momentum": ("sgd", "--learning-rate 0.05 --momentum 0.9 --weight-decay 1e-2 --decay-all --max-grad-norm 1.0 "
                            "--lr-scheduler-type constant"),
    "sgd-nesterov": ("sgd", CONSTANT + "--learning-rate 0.05 --momentum 0.9 --nesterov"),
}


RUN = []                                       # flags of every shardc-train, by run_on()
PROCESSES = False


def run_on(device, processes=False):
    global PROCESSES
    RUN[:] = ["--device", device] if device else []
    PROCESSES = processes


class Differs(Exception):
    pass


def call_ranks(ranks, *command):
    """As torchrun would start them; all must end well."""
    with socket.socket() as s:                 # a number that no other job has
        s.bind(("localhost", 0))
        port = str(s.getsockname()[1])
        env = dict(os.environ, WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="localhost", MASTER_PORT=port)
        ps = [subprocess.Popen([str(c) for c in command], env=dict(env, RANK=str(r), LOCAL_RANK=str(r)), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for r in range(ranks)]
        try:
            outs = [p.communicate(timeout=600)[0] for p in ps]
        finally:
            for p in ps:
                p.kill()
    for p, out in zip(ps, outs):
        if p.returncode:
            raise Differs(f"a rank exits with {p.returncode}: " + " | ".join(out.strip().splitlines()[-4:]))


def call(*command):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)
    if r.returncode:
        tail = (r.stderr or r.stdout).strip().splitlines()[-4:]
        raise Differs(f"{os.path.basename(str(command[0]))} exits with {r.returncode}: " + " | ".join(tail))
    return r.stdout


def dims(folder, golden, share):
    text = f"batch={golden['batch'] // share}"
    if "input_ids" in load_file(f"{folder}/data.safetensors"):
        text += f",src={golden['src']}"
    return text + (f",tgt={golden['tgt']}" if golden["task"] == "seq2seq" else "")


def compile_plan(bin_dir, model, plan, golden, optimizer, ranks=1, zero=0, accumulate=1, extra=()):
    command = [f"{bin_dir}/shardc", model, "-o", plan, "--ranks", ranks, "--zero", zero, "--accumulate", accumulate,
               "--dim", dims(os.path.dirname(model), golden, ranks * accumulate), "--optimizer", optimizer, *extra]
    if "-loss" not in os.path.basename(model):
        loss = "mse" if golden["task"] == "regress" else "cross_entropy"
        command += ["--loss", loss, "--logits", "logits", "--labels", "labels"]
    call(*command)
    call(f"{bin_dir}/shardc-inspect", plan, "--check")


def train(bin_dir, plan, folder, out, steps, flags, extra=(), ranks=1):
    command = [f"{bin_dir}/shardc-train", plan, "--data", f"{folder}/data.safetensors", "--no-shuffle", "--max-steps", steps,
               "--output-dir", out, *flags.split(), *extra, *RUN]
    call_ranks(ranks, *command) if PROCESSES and ranks > 1 else call(*command)
    return read_log(out)


def read_log(out):
    """The updates that a run logged into its --output-dir."""
    with open(f"{out}/log.jsonl") as f:
        return [line for line in map(json.loads, f) if "loss" in line]


def relative(got, want):
    got, want = np.array(got, np.float64), np.array(want, np.float64)
    return float(np.max(np.abs(got - want) / np.maximum(np.abs(want), 1e-12)))


def tensors(prefix, file, exact, golden, judge):
    """Calls judge(name, got, wanted) for each parameter; a tied one may carry any of its names."""
    got = load_file(file)
    for key in [k for k in exact if k.startswith(prefix)]:
        name = key[len(prefix):]
        names = next((t for t in golden["tied"] if name in t), [name])
        found = [n for n in names if n in got]
        if len(found) != 1:
            raise Differs(f"{prefix}{name} is there {len(found)} times; the file has {sorted(got)[:5]}...")
        if got[found[0]].shape != exact[key].shape:
            raise Differs(f"{prefix}{name} has shape {got[found[0]].shape}, wanted {exact[key].shape}")
        judge(name, got[found[0]].astype(np.float64), exact[key].astype(np.float64))


def compare_weights(folder, golden, gradients, weights):
    exact = load_file(f"{folder}/golden.safetensors")
    largest = max(np.abs(v).max() for k, v in exact.items() if k.startswith("grad/"))
    worst = dict(grad=0.0, final=0.0)
    noise = set()                              # no gradient in theory (a bias before a softmax): Adam makes steps of rounding errors

    def gradient(name, got, want):
        if np.abs(want).max() < 1e-9 * largest:
            noise.add(name)
            if np.abs(got).max() > 1e-6 * largest:
                raise Differs(f"gradient of {name} should vanish, but reaches {np.abs(got).max():.1e}")
            return
        error = float(np.abs(got - want).max() / np.abs(want).max())
        worst["grad"] = max(worst["grad"], error)
        if not error <= 1e-4:
            raise Differs(f"gradient of {name} is off by {error:.1e} of its largest element")

    def final(name, got, want):
        if name in noise:
            return
        way = np.sqrt(np.mean((want - exact["param/" + name]) ** 2))
        error = float(np.sqrt(np.mean((got - want) ** 2)) / max(way, 1e-12))
        allowed = max(1e-3, 4 * golden["final_rms_error_of_float32"][name])
        worst["final"] = max(worst["final"], error)
        if not error <= allowed:
            raise Differs(f"final {name} is off by {error:.1e} of the way it went, allowed {allowed:.1e}")

    tensors("grad/", gradients, exact, golden, gradient)
    tensors("final/", weights, exact, golden, final)
    return f"gradients {worst['grad']:.1e}, final weights {worst['final']:.1e}"


def check(bin_dir, folder, model, setting, ranks, zero, accumulate, rtol):
    """Returns what was measured, or raises Differs."""
    with open(f"{folder}/golden.json") as f:
        golden = json.load(f)
    want, (optimizer, flags) = golden["settings"][setting], SETTINGS[setting]
    with tempfile.TemporaryDirectory() as tmp:
        compile_plan(bin_dir, model, f"{tmp}/m.plan", golden, optimizer, ranks, zero, accumulate)
        files = [f"{tmp}/gradients.safetensors", f"{tmp}/weights.safetensors"]
        extra = ["--dump-gradients", files[0], "--save-weights", files[1]] if setting == "adamw" else []
        log = train(bin_dir, f"{tmp}/m.plan", folder, f"{tmp}/out", golden["steps"], flags, extra, ranks)
        if len(log) != golden["steps"]:
            raise Differs(f"{len(log)} steps in the log, wanted {golden['steps']}")
        loss = relative([r["loss"] for r in log], want["loss64"])
        norm = relative([r["grad_norm"] for r in log], want["gradnorm64"])
        if not loss <= rtol:
            raise Differs(f"loss is off by {loss:.1e}; first step {log[0]['loss']:.9g}, wanted {want['loss64'][0]:.9g}")
        if not norm <= 1e-4:
            raise Differs(f"gradient norm is off by {norm:.1e}")
        return f"loss {loss:.1e}, norm {norm:.1e}" + (", " + compare_weights(folder, golden, *files) if extra else "")


def arguments(doc, settings):
    """Of a program that calls compare_all, which may add its own."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("folders", nargs="+")
    p.add_argument("--only", default="")
    p.add_argument("--settings", default=settings)
    p.add_argument("--ranks", default="1")
    p.add_argument("--zero", default="0")
    p.add_argument("--accumulate", default="1")
    p.add_argument("--device")
    p.add_argument("--processes", action="store_true")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("-v", action="store_true")
    return p


def compare_all(a, recorded, check):
    """check(folder, model, setting, ranks, zero, accumulate) for each case that the arguments ask for, in folders with the file
    `recorded`; prints what came out, and exits."""
    ints = lambda text: [int(x) for x in text.split(",")]
    folders = [f for pattern in a.folders for f in glob.glob(pattern) if os.path.exists(f"{f}/{recorded}")]
    if not folders:
        print(f"skipped: no models in {' '.join(a.folders)}")
        sys.exit(77)
    models = [(f, m) for f in sorted(folders) for m in sorted(glob.glob(f"{f}/*.onnx")) if a.only in m and "dropout" not in m]
    cases = [(f, m, s, r, z, k) for (f, m), s, r, z, k in itertools.product(
        models, a.settings.split(","), ints(a.ranks), ints(a.zero), ints(a.accumulate)) if r > 1 or z == 0]

    def run(case):
        try:
            return True, check(*case)
        except Differs as e:
            return False, str(e)
        except Exception as e:                                          # a time-out, a file that is not there
            return False, f"{type(e).__name__}: {e}"

    bad = 0
    with ThreadPoolExecutor(a.jobs) as pool:
        for (f, m, s, r, z, k), (ok, text) in zip(cases, pool.map(run, cases)):
            bad += not ok
            if a.v or not ok:
                name = f"{os.path.basename(f)}/{os.path.basename(m)}"
                print("ok  " if ok else "BAD ", f"{name} {s} ranks {r} zero {z} accumulate {k}: {text}", flush=True)
    print(f"{len(cases) - bad} of {len(cases)} agree")
    sys.exit(1 if bad or not cases else 0)


def main():
    p = arguments(__doc__, ",".join(SETTINGS))
    p.add_argument("--rtol", type=float, default=5e-6)
    a = p.parse_args()
    run_on(a.device, a.processes)
    compare_all(a, "golden.json", lambda *case: check(a.bin, *case, a.rtol))


if __name__ == "__main__":
    main()
