# SPDX-License-Identifier: Apache-2.0
"""However a batch of 96 rows is cut over ranks and micro-steps, at whatever stage, the losses of 20 steps are one rank's.

    cuts.py BIN MODEL... [--ranks 1,2,3,4,8] [--zero 0,1,2,3] [--accumulate 1,2,4] [--repeat N] [--rtol 5e-6] [--device cuda] [-v]

Data is drawn from the rows of the model's folder. Every N-th run is done twice and must repeat itself bit for bit (weights too).
Exit code 77: a MODEL is missing, or numpy or safetensors is.
"""
import argparse
import itertools
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from golden import RUN, Differs, call, compile_plan, load_file, np, read_log, relative, run_on
from safetensors.numpy import save_file

ROWS, STEPS = 96, 20


def draw_rows(folder, path):
    """20 batches of rows drawn with replacement: no two batches are the same."""
    arrays = load_file(f"{folder}/data.safetensors")
    rows = np.random.default_rng(7).integers(0, len(next(iter(arrays.values()))), ROWS * STEPS)
    save_file({name: np.ascontiguousarray(a[rows]) for name, a in arrays.items()}, path)


def run(bin_dir, model, golden, data, ranks, zero, accumulate):
    """(log, bytes of the trained weights)"""
    with tempfile.TemporaryDirectory() as t:
        compile_plan(bin_dir, model, f"{t}/m.plan", dict(golden, batch=ROWS), "adamw", ranks, zero, accumulate)
        call(f"{bin_dir}/shardc-train", f"{t}/m.plan", "--data", data, "--max-steps", STEPS, "--learning-rate", "1e-3",
             "--weight-decay", "0.1", "--max-grad-norm", "0.5", "--warmup-steps", 5, "--output-dir", f"{t}/out", *RUN)
        with open(f"{t}/out/model.safetensors", "rb") as f:
            return read_log(f"{t}/out"), f.read()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("models", nargs="+")
    p.add_argument("--ranks", default="1,2,3,4,8")
    p.add_argument("--zero", default="0,1,2,3")
    p.add_argument("--accumulate", default="1,2,4")
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--rtol", type=float, default=5e-6)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--device")
    p.add_argument("-v", action="store_true")
    a = p.parse_args()
    run_on(a.device)
    if missing := [m for m in a.models if not os.path.exists(m)]:
        print(f"skipped: no {missing[0]}")
        sys.exit(77)
    ints = lambda text: [int(x) for x in text.split(",")]
    cuts = [c for c in itertools.product(ints(a.ranks), ints(a.zero), ints(a.accumulate)) if c[0] > 1 or c[1] == 0]
    bad = total = 0
    for model in a.models:
        folder = os.path.dirname(model)
        with open(f"{folder}/golden.json") as f:
            golden = json.load(f)
        with tempfile.TemporaryDirectory() as t, ThreadPoolExecutor(a.jobs) as pool:
            data = f"{t}/data.safetensors"
            draw_rows(folder, data)
            want, _ = run(a.bin, model, golden, data, 1, 0, 1)

            def one(numbered):
                i, cut = numbered
                try:
                    log, weights = run(a.bin, model, golden, data, *cut)
                    if len(log) != STEPS:
                        raise Differs(f"{len(log)} steps, wanted {STEPS}")
                    loss = relative([r["loss"] for r in log], [r["loss"] for r in want])
                    norm = relative([r["grad_norm"] for r in log], [r["grad_norm"] for r in want])
                    if not (loss <= a.rtol and norm <= 1e-4):
                        raise Differs(f"loss is off by {loss:.1e}, gradient norm by {norm:.1e}")
                    if i % a.repeat == 0:
                        again, same = run(a.bin, model, golden, data, *cut)
                        if [r["loss"] for r in again] != [r["loss"] for r in log] or same != weights:
                            raise Differs("does not repeat itself bit for bit")
                    return True, f"loss {loss:.1e}, norm {norm:.1e}"
                except Exception as e:
                    return False, str(e) if isinstance(e, Differs) else f"{type(e).__name__}: {e}"

            for (ranks, zero, accumulate), (ok, text) in zip(cuts, pool.map(one, enumerate(cuts))):
                total += 1
                bad += not ok
                if a.v or not ok:
                    print("ok  " if ok else "BAD ", f"{model} ranks {ranks} zero {zero} accumulate {accumulate}: {text}", flush=True)
    print(f"{total - bad} of {total} agree")
    sys.exit(1 if bad or not total else 0)


if __name__ == "__main__":
    main()
