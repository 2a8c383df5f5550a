# SPDX-License-Identifier: Apache-2.0
"""Trains in bf16 (or tf32) and compares with float64, by the measure of PyTorch's autocast; and cuts over ranks and micro-steps with one rank.

    precision.py BIN FOLDER... [--only TEXT] [--settings A,B] [--ranks 1,2 --zero 0,3 --accumulate 1,2] [--device cuda] [-v]

FOLDERs are those of golden.py with a bf16.json (tests/models/golden_torch.py, `autocast`). For one rank and one micro-step the largest
relative error of the losses of all steps must be at most twice that of PyTorch's autocast (or of --least, where PyTorch was lucky);
of tf32 half of it (three bits more, but a ReLU that flips costs the same). A cut must come as near to the exact losses as --cut times that allows: its sums are rounded in another order. Exit codes as golden.py.
"""
import json
import tempfile

from golden import SETTINGS, Differs, arguments, compare_all, compile_plan, relative, run_on, train


def check(bin_dir, folder, model, setting, ranks, zero, accumulate, a):
    with open(f"{folder}/golden.json") as f:
        golden = json.load(f)
    with open(f"{folder}/bf16.json") as f:
        narrow = json.load(f)
    want, (optimizer, flags) = narrow["settings"][setting], SETTINGS[setting]
    with tempfile.TemporaryDirectory() as tmp:
        compile_plan(bin_dir, model, f"{tmp}/m.plan", golden, optimizer, ranks, zero, accumulate, ["--precision", a.precision, *a.flags.split()])
        log = train(bin_dir, f"{tmp}/m.plan", folder, f"{tmp}/out", narrow["steps"], flags, ranks=ranks)
    if len(log) != narrow["steps"]:
        raise Differs(f"{len(log)} steps in the log, wanted {narrow['steps']}")
    error = relative([r["loss"] for r in log], want["loss64"])
    allowed = (2 if a.precision == "bf16" else 1) * max(want["error"], a.least) * (1 if ranks * accumulate == 1 else a.cut)
    if not error <= allowed:
        raise Differs(f"loss is off by {error:.1e}, allowed {allowed:.1e}")
    return f"loss {error:.1e}, autocast {want['error']:.1e}"


def main():
    p = arguments(__doc__, ",".join(SETTINGS))
    p.add_argument("--precision", default="bf16", choices=["bf16", "tf32"])
    p.add_argument("--flags", default="", help="more for shardc")
    p.add_argument("--least", type=float, default=0)
    p.add_argument("--cut", type=float, default=1.5)
    a = p.parse_args()
    run_on(a.device, a.processes)
    a.flags += " --target cuda" * (a.device == "cuda")
    compare_all(a, "bf16.json", lambda *case: check(a.bin, *case, a))


if __name__ == "__main__":
    main()
