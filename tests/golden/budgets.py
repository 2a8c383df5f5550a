# SPDX-License-Identifier: Apache-2.0
"""Random budgets for real models: what --memory accepts fits and is sound, what it refuses has the peak that the error names.
budgets.py BIN FOLDER [--budgets 200] [--seed 1]

FOLDER holds *.onnx whose weights are named but may be absent. Half of the budgets lie between the lower bound and the arena of the plan without
a budget (or next to them, where both are the same), half from a third of the bound to 1.2 arenas. A plan that fits: its arena and what lies
beside it are within the budget, `--check` finds it sound, and `shardc-train --check-races` a step of each different plan for a CPU that is
smaller than 2 GiB. Exit 3: the peak is the lower bound, its tables add up to it, it is where `--peak` of a plan without a budget says;
"No packing can help" exactly where the bound is above the budget; and of every tenth refusal all changes that are said to fit do, with what they
are said to take. Exit code 77: no such folder.
"""
import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import save_file

CASES = [("t5-small-ts17.onnx", "batch=2,src=24,tgt=16", ["--dropout", "0"]),
         ("deberta-v2-xlarge-ts17.onnx", "batch=40,src=128", ["--ranks", "2", "--zero", "3", "--target", "cuda", "--precision", "bf16", "--dropout", "0"]),
         ("t5-large-ts17.onnx", "batch=16,src=128,tgt=128", ["--ranks", "2", "--zero", "2", "--target", "cuda", "--precision", "bf16"])]
RACES_LIMIT = 2 << 30


def run(*command, codes=(0,)):
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode in codes, f"{' '.join(command)}: exit code {r.returncode}\n{r.stderr[-600:]}"
    return r


def number(text):
    return int(text.replace(",", ""))


def inspected(a, plan):
    return json.loads(run(f"{a.bin}/shardc-inspect", plan, "--json").stdout)


def size_of(text):
    value, unit = text.split()
    return float(value) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)


class Case:
    def __init__(self, a, tmp, model, dims, flags):
        self.a, self.dims, self.flags = a, dims, flags
        self.model, self.plan = f"{a.folder}/{model}", f"{tmp}/m.plan"
        self.compile("--dim", dims, *flags)
        free = inspected(a, self.plan)
        self.bound, self.arena, self.floor = free["lower_bound_bytes"], free["peak_bytes"], free["floor_bytes"]
        self.place = re.search(r"^at .*$", run(f"{a.bin}/shardc-inspect", self.plan, "--peak").stdout, re.M).group()
        self.data, self.seen, self.raced = f"{tmp}/data.safetensors", set(), 0
        self.rows = 4 * free["batch"] * free["ranks"] * free["accumulate"]
        self.inputs = free["inputs"]

    def compile(self, *flags, codes=(0,)):
        return run(f"{self.a.bin}/shardc", self.model, "-o", self.plan, *flags, codes=codes)

    def budgets(self, rng, count):
        yield self.floor + self.arena
        yield self.floor + self.bound - 1
        for i in range(count - 2):
            if i % 2:
                yield self.floor + rng.randint(self.bound // 3, self.arena * 6 // 5)
            else:
                yield self.floor + rng.randint(self.bound - 512, self.arena + 512)

    def fits(self, budget):
        got = inspected(self.a, self.plan)
        assert got["peak_bytes"] + got["floor_bytes"] <= budget, (got["peak_bytes"], budget)
        assert got["lower_bound_bytes"] == self.bound, got["lower_bound_bytes"]
        run(f"{self.a.bin}/shardc-inspect", self.plan, "--check")
        with open(self.plan, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        if digest in self.seen or got["options"]["target"] != "cpu" or got["peak_bytes"] > RACES_LIMIT:
            return
        self.seen.add(digest)
        self.raced += 1
        self.write_data()
        run(f"{self.a.bin}/shardc-train", self.plan, "--data", self.data, "--init-weights", "normal:0.02", "--max-steps", "1", "--check-races",
            "--memory", f"{budget}B", "--quiet")

    def write_data(self):
        if os.path.exists(self.data):
            return
        rng = np.random.default_rng(1)
        shapes = {i["name"]: [self.rows, *i["shape"][1:]] for i in self.inputs}
        save_file({name: np.ones(shape, np.int64) if "mask" in name else rng.integers(0, 1000, shape) for name, shape in shapes.items()}, self.data)

    def refused(self, budget, said, try_changes):
        """How many changes were tried."""
        assert not os.path.exists(self.plan), "a plan that does not fit was written"
        assert number(re.search(r"^peak: ([\d,]+) bytes", said, re.M).group(1)) == self.bound, said
        assert self.place in said, (self.place, said)
        for table in re.search(r"by kind\n(.*?)\n\n.*?the largest\n(.*?)\n\n", said, re.S).groups():
            assert sum(number(line.split()[0]) for line in table.split("\n")) == self.bound, said
        assert ("No packing can help" in said) == (self.bound + self.floor > budget), said
        changes = re.findall(r"^  (--.*?)  +([\d.]+ .?i?B) ", said, re.M) if try_changes else []
        for change, takes in changes:
            words, flags, dims = change.split(), list(self.flags), self.dims
            for flag, value in zip(words[::2], words[1::2]):
                if flag == "--dim":
                    dims = re.sub(r"batch=\d+", value, dims)
                elif flag in flags:
                    flags[flags.index(flag) + 1] = value
                else:
                    flags += [flag, value]
            self.compile("--dim", dims, *flags, "--memory", f"{budget}B")
            got = inspected(self.a, self.plan)
            total = got["peak_bytes"] + got["floor_bytes"]
            assert abs(total - size_of(takes)) < 0.006 * total, (change, takes, total)
            os.remove(self.plan)
        return len(changes)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("folder")
    p.add_argument("--budgets", type=int, default=200, help="of all models together")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    cases = [case for case in CASES if os.path.exists(f"{a.folder}/{case[0]}")]
    if not cases:
        print(f"skipped: no models in {a.folder}")
        sys.exit(77)
    rng = random.Random(a.seed)
    for i, (model, dims, flags) in enumerate(cases):
        with tempfile.TemporaryDirectory() as tmp:
            case, fit, no, tried = Case(a, tmp, model, dims, flags), 0, 0, 0
            for n, budget in enumerate(case.budgets(rng, a.budgets * (i + 1) // len(cases) - a.budgets * i // len(cases))):
                os.path.exists(case.plan) and os.remove(case.plan)
                r = case.compile("--dim", dims, *flags, "--memory", f"{budget}B", codes=(0, 3))
                if r.returncode == 0:
                    fit += 1
                    case.fits(budget)
                else:
                    no += 1
                    assert budget < case.arena + case.floor, "refused, though the plan without a budget fits"
                    tried += case.refused(budget, r.stderr, try_changes=no % 10 == 1)
            print(f"ok   {model}: bound {case.bound}, arena {case.arena}, beside them {case.floor}: {fit} budgets fit ({case.raced} plans without "
                  f"races), {no} are refused, {tried} changes do fit", flush=True)
            assert fit and no, "a side was not tried"


if __name__ == "__main__":
    main()
