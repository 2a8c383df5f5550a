# SPDX-License-Identifier: Apache-2.0
"""A run on a CUDA device repeats itself, bit for bit, with graphs and without: same_bits.py BIN MODEL... [--ranks 1,2]

20 steps of each MODEL (an .onnx with data.safetensors and golden.json beside it), losses, norms and final weights.
"""
import argparse
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from golden import SETTINGS, Differs, call, compile_plan, read_log  # noqa: E402

STEPS = 20


def run(bin_dir, plan, folder, out, flags):
    call(f"{bin_dir}/shardc-train", plan, "--data", f"{folder}/data.safetensors", "--max-steps", STEPS, "--output-dir", out,
         "--device", "cuda", *SETTINGS["adamw-clip-linear"][1].split(), *flags)
    with open(f"{out}/model.safetensors", "rb") as weights:
        lines = [(line["loss"], line["grad_norm"]) for line in read_log(out)]
        if len(lines) != STEPS:
            raise Differs(f"{len(lines)} steps in the log, wanted {STEPS}")
        return lines, weights.read()


def check(bin_dir, model, ranks):
    folder = os.path.dirname(model)
    with open(f"{folder}/golden.json") as f:
        golden = json.load(f)
    with tempfile.TemporaryDirectory() as tmp:
        compile_plan(bin_dir, model, f"{tmp}/m.plan", golden, "adamw", ranks, zero=3 if ranks > 1 else 0)
        runs = [run(bin_dir, f"{tmp}/m.plan", folder, f"{tmp}/{i}", flags)
                for i, flags in enumerate(([], [], ["--no-cuda-graphs"]))]
    for other, what in zip(runs[1:], ("again", "without graphs")):
        for step, (a, b) in enumerate(zip(runs[0][0], other[0]), 1):
            if a != b:
                raise Differs(f"{what}: step {step}: loss, norm {b}, wanted {a}")
        if runs[0][1] != other[1]:
            raise Differs(f"{what}: weights differ")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("models", nargs="+")
    p.add_argument("--ranks", default="1,2")
    a = p.parse_args()
    cases = [(m, int(r)) for m in a.models for r in a.ranks.split(",")]
    bad = 0
    for model, ranks in cases:
        try:
            check(a.bin, model, ranks)
        except Differs as e:
            bad += 1
            print(f"BAD  {model} ranks {ranks}: {e}", flush=True)
    print(f"{len(cases) - bad} of {len(cases)} repeat themselves")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
