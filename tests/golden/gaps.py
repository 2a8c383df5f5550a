# SPDX-License-Identifier: Apache-2.0
"""Plans take hardly more memory than their buffers need at the worst moment: gaps.py BIN FOLDER [--old BIN] [FLAG...]

FOLDER holds folders of *.onnx. Every graph at every batch, stage and number of ranks: the arena is at most max(0.1 %, 64 KiB) above its
lower bound, emission (packing and what is around it) takes less than --seconds, and the arena is not larger than what --old, an earlier
build, made of the same. Further FLAGs go to shardc. Exit code 77: no such folder.
"""
import argparse
import glob
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SLACK = 64 << 10


def compile_one(bin_dir, model, plan, batch, ranks, zero, flags):
    """(numbers of the plan, milliseconds of emission or None: this build does not say)"""
    golden = {"src": 128, "tgt": 128, "task": "classify" if "deberta" in model else "seq2seq"}
    if os.path.exists(path := os.path.join(os.path.dirname(model), "golden.json")):
        with open(path) as f:
            golden = json.load(f)
    dims = f"batch={batch}"
    if "mlp" not in model:
        dims += f",src={golden['src']}"
    if golden["task"] == "seq2seq":
        dims += f",tgt={golden['tgt']}"
    command = [f"{bin_dir}/shardc", model, "-o", plan, "--dim", dims, "--ranks", str(ranks), "--zero", str(zero), "--time-passes", *flags]
    if "-loss" not in model and ("full/" not in model or golden["task"] != "seq2seq"):
        command += ["--loss", "mse" if golden["task"] == "regress" else "cross_entropy", "--logits", "logits"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)}: {said.strip()[-400:]}")
    emission = re.search(r"([\d.]+) ms  emit", said)
    inspected = subprocess.run([f"{bin_dir}/shardc-inspect", plan, "--json"], capture_output=True, text=True, check=True)
    # Others may keep the machine busy: emission has not taken more of a processor than all of the compiler did.
    return json.loads(inspected.stdout), emission and min(float(emission[1]), 1e3 * usage.ru_utime)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("folder")
    p.add_argument("--old", help="folder with an earlier shardc and shardc-inspect")
    p.add_argument("--models", default="*/*.onnx", help="which graphs in the folder")
    p.add_argument("--batch", default="8,64")
    p.add_argument("--zero", default="0,1,2,3")
    p.add_argument("--ranks", default="1,2,8")
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("-v", action="store_true", help="a line for every plan")
    a, flags = p.parse_known_args()
    models = sorted(glob.glob(f"{a.folder}/{a.models}"))
    if not models:
        print(f"skipped: no models in {a.folder}")
        sys.exit(77)
    numbers = lambda text: [int(n) for n in text.split(",")]
    runs = [(m, b, r, z) for m, b, r, z in itertools.product(models, numbers(a.batch), numbers(a.ranks), numbers(a.zero)) if r > 1 or z == 0]

    def judge(run):
        with tempfile.TemporaryDirectory() as t:
            new, ms = compile_one(a.bin, *run[:1], f"{t}/new.plan", *run[1:], flags)
            old = compile_one(a.old, *run[:1], f"{t}/old.plan", *run[1:], flags)[0]["peak_bytes"] if a.old else None
        return run, new["peak_bytes"], new["lower_bound_bytes"], new["buffers"], ms, old

    bad, worst_gap, worst_ms, above = 0, (0, ""), (0, ""), 0
    with ThreadPoolExecutor(a.jobs) as pool:
        for run, peak, bound, buffers, ms, old in pool.map(judge, runs):
            gap = peak - bound
            faults = []
            if gap > max(bound / 1000, SLACK):
                faults.append("gap")
            if ms and ms > 1e3 * a.seconds:
                faults.append("time")
            if old is not None and peak > old:
                faults.append("above the old one")
            bad += bool(faults)
            above += gap > 0
            name = f"{'/'.join(run[0].split('/')[-2:])} batch {run[1]} ranks {run[2]} zero {run[3]}"
            worst_gap = max(worst_gap, (gap / bound, name))
            worst_ms = max(worst_ms, (ms or 0, name))
            if faults or a.v:
                print("BAD " if faults else "ok  ", name, f"arena {peak} bound {bound} gap {gap} ({100 * gap / bound:.4f} %)", f"buffers {buffers}",
                      f"emission {ms} ms", f"old {old}" if old is not None else "", ", ".join(faults), flush=True)
    print(f"{len(runs) - bad} of {len(runs)} plans are tight, {len(runs) - above} of them exactly; "
          f"largest gap {100 * worst_gap[0]:.4f} % ({worst_gap[1]}); longest emission {worst_ms[0]:.0f} ms ({worst_ms[1]})")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
