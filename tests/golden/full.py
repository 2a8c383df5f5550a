# SPDX-License-Identifier: Apache-2.0
"""Real-size graphs compile in little time and memory, and their plans are sound: full.py BIN FOLDER [--seconds 10] [--gib 2] [FLAG...]

FOLDER holds *.onnx whose weights are named but may be absent. Further FLAGs go to shardc. Exit code 77: no such folder.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time


def check(bin_dir, model, plan, limits, flags):
    deberta = "deberta" in os.path.basename(model)
    command = [f"{bin_dir}/shardc", model, "-o", plan, "--dim", "batch=8,src=128" + ("" if deberta else ",tgt=128"), *flags]
    if deberta:
        command += "--loss cross_entropy --logits logits --labels labels".split()
    start = time.time()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds, gib = time.time() - start, usage.ru_maxrss / (1 << 20)
    if child.returncode:
        return False, f"shardc exits with {child.returncode}: {said.strip()[-400:]}"
    r = subprocess.run([f"{bin_dir}/shardc-inspect", plan, "--check"], capture_output=True, text=True)
    if r.returncode:
        return False, f"the plan is not sound: {r.stderr.strip()[-400:]}"
    return seconds < limits[0] and gib < limits[1], f"{seconds:.1f} s, {gib:.2f} GiB, plan of {os.path.getsize(plan) / (1 << 20):.1f} MiB"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("folder")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--gib", type=float, default=2)
    a, flags = p.parse_known_args()
    models = sorted(glob.glob(f"{a.folder}/*.onnx"))
    if not models:
        print(f"skipped: no models in {a.folder}")
        sys.exit(77)
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for model in models:
            ok, text = check(a.bin, model, f"{tmp}/m.plan", (a.seconds, a.gib), flags)
            bad += not ok
            print("ok  " if ok else "BAD ", os.path.basename(model), text, flush=True)
    print(f"{len(models) - bad} of {len(models)} compile within {a.seconds:g} s and {a.gib:g} GiB")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
