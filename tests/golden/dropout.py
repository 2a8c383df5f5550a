# SPDX-License-Identifier: Apache-2.0
"""Dropout against PyTorch where steps cannot be compared one by one: dropout.py BIN FOLDER... [--device cuda] [-v]

For each *-dropout.onnx beside a dropout.json: the mean loss over 20 seeds must lie within 3 standard errors of the difference to
PyTorch's; one seed twice gives the same bits, another seed others, and `--dropout 0` gives the losses of golden.json.
"""
import argparse
import glob
import json
import os
import sys
import tempfile

from golden import SETTINGS, Differs, compile_plan, np, relative, run_on, train

SEEDS = 20


def losses(bin_dir, plan, folder, golden, seed, tmp, setting):
    """Losses of a run, and the bytes of its final weights."""
    weights = f"{tmp}/weights.safetensors"
    log = train(bin_dir, plan, folder, f"{tmp}/out-{seed}", golden["steps"], SETTINGS[setting][1],
                ["--seed", str(seed), "--save-weights", weights])
    os.remove(f"{tmp}/out-{seed}/log.jsonl")
    with open(weights, "rb") as f:
        return [r["loss"] for r in log], f.read()


def check(bin_dir, folder, model):
    with open(f"{folder}/golden.json") as f, open(f"{folder}/dropout.json") as g:
        golden, peer = json.load(f), json.load(g)
    setting = peer["setting"]
    with tempfile.TemporaryDirectory() as tmp:
        compile_plan(bin_dir, model, f"{tmp}/m.plan", golden, SETTINGS[setting][0])
        runs = [losses(bin_dir, f"{tmp}/m.plan", folder, golden, seed, tmp, setting) for seed in range(SEEDS)]
        if losses(bin_dir, f"{tmp}/m.plan", folder, golden, 0, tmp, setting) != runs[0]:
            raise Differs("seed 0 gives other bits the second time")
        if len({w for _, w in runs}) != SEEDS or len({l[0] for l, _ in runs}) != SEEDS:
            raise Differs("two seeds give the same run")
        ours = [np.mean(l) for l, _ in runs]
        error = np.mean(ours) - peer["mean"]
        allowed = 3 * np.sqrt((np.std(ours, ddof=1) ** 2 + peer["std"] ** 2) / SEEDS)
        if not abs(error) < allowed:
            raise Differs(f"mean loss is {np.mean(ours):.5f}, PyTorch's {peer['mean']:.5f}: off by {error:+.5f}, allowed {allowed:.5f}")
        compile_plan(bin_dir, model, f"{tmp}/0.plan", golden, SETTINGS[setting][0], extra=["--dropout", "0"])
        off = relative(losses(bin_dir, f"{tmp}/0.plan", folder, golden, 0, tmp, setting)[0], golden["settings"][setting]["loss64"])
        if not off <= 5e-6:
            raise Differs(f"with --dropout 0 the loss is off by {off:.1e}")
        without = abs(np.mean(golden["settings"][setting]["loss64"]) - peer["mean"]) / allowed * 3
        return f"off by {error:+.5f}, allowed {allowed:.5f} (no dropout at all would be {without:.0f} standard errors off)"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("folders", nargs="+")
    p.add_argument("--device")
    p.add_argument("-v", action="store_true")
    a = p.parse_args()
    run_on(a.device)
    bad = ran = 0
    for folder in sorted(f for pattern in a.folders for f in glob.glob(pattern) if os.path.exists(f"{f}/dropout.json")):
        for model in sorted(glob.glob(f"{folder}/*-dropout.onnx")):
            ran += 1
            name = f"{os.path.basename(folder)}/{os.path.basename(model)}"
            try:
                text = check(a.bin, folder, model)
                if a.v:
                    print("ok  ", name, text, flush=True)
            except Differs as e:
                bad += 1
                print("BAD ", name, e, flush=True)
    if not ran:
        print(f"skipped: no dropout models in {' '.join(a.folders)}")
        sys.exit(77)
    print(f"{ran - bad} of {ran} agree")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
