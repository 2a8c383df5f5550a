# SPDX-License-Identifier: Apache-2.0
"""The largest batch of real models: found in seconds, fits, and one row more does not. budget.py BIN FOLDER [--memory 24GiB] [--seconds 10]

FOLDER holds *.onnx whose weights are named but may be absent. Exit code 77: no such folder.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

MODELS = {"t5-large-ts17.onnx": "src=128,tgt=128", "deberta-v2-xlarge-ts17.onnx": "src=128"}


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    return r.returncode, r.stdout, r.stderr


def check(a, model, zero, plan):
    dims = MODELS[model]
    command = [f"{a.bin}/shardc", f"{a.folder}/{model}", "-o", plan, "--ranks", "2", "--zero", str(zero), "--target", "cuda",
               "--precision", "bf16", "--dropout", "0", "--memory", a.memory]
    start = time.time()
    code, _, said = run(*command, "--batch", "max", "--dim", dims)
    seconds = time.time() - start
    if code:
        return False, f"shardc exits with {code}: {said.strip()[-400:]}"
    code, out, _ = run(f"{a.bin}/shardc-inspect", plan, "--json")
    batch = json.loads(out)["batch"]
    if code or run(f"{a.bin}/shardc-inspect", plan, "--check")[0]:
        return False, "the plan is not sound"
    codes = []
    for rows in batch, batch + 1:
        start_one = time.time()
        codes.append(run(*command, "--batch", str(rows), "--dim", dims)[0])
        refused = time.time() - start_one
    ok = codes == [0, 3] and seconds < a.seconds and refused < 3 * a.seconds
    return ok, f"stage {zero}: batch {batch} in {seconds:.1f} s; at it and above shardc exits with {codes}, the latter after {refused:.1f} s"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("folder")
    p.add_argument("--memory", default="24GiB")
    p.add_argument("--seconds", type=float, default=10)
    a = p.parse_args()
    models = [m for m in MODELS if os.path.exists(f"{a.folder}/{m}")]
    if not models:
        print(f"skipped: no models in {a.folder}")
        sys.exit(77)
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for model in models:
            for zero in 2, 3:
                ok, text = check(a, model, zero, f"{tmp}/m.plan")
                bad += not ok
                print("ok  " if ok else "BAD ", model, text, flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
