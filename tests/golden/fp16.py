# SPDX-License-Identifier: Apache-2.0
"""Trains in fp16 beside fp32: no update is skipped after the first ones, and the losses end together.

    fp16.py BIN FOLDER... [--only TEXT] [--steps 200] [--ranks 1,2 --zero 0,3 --accumulate 1,2] [--device cuda] [-v]

FOLDERs are those of golden.py. After --settle steps no line of the log may say that its update was skipped; the mean loss of the last
--last steps must be within --within of fp32's on one rank. Exit codes as golden.py.
"""
import functools
import json
import tempfile

from golden import SETTINGS, Differs, arguments, compare_all, compile_plan, np, run_on, train


@functools.cache
def exact(bin_dir, folder, model, setting, steps, golden):
    return run(bin_dir, folder, model, setting, steps, dict(golden), 1, 0, 1, "fp32", "")


def run(bin_dir, folder, model, setting, steps, golden, ranks, zero, accumulate, precision, flags):
    optimizer, train_flags = SETTINGS[setting]
    with tempfile.TemporaryDirectory() as tmp:
        compile_plan(bin_dir, model, f"{tmp}/m.plan", golden, optimizer, ranks, zero, accumulate, ["--precision", precision, *flags.split()])
        log = train(bin_dir, f"{tmp}/m.plan", folder, f"{tmp}/out", steps, train_flags, ranks=ranks)
    if len(log) != steps:
        raise Differs(f"{len(log)} steps in the log, wanted {steps}")
    return log


def check(bin_dir, folder, model, setting, ranks, zero, accumulate, a):
    with open(f"{folder}/golden.json") as f:
        golden = json.load(f)
    shape = tuple((k, golden[k]) for k in ("batch", "src", "tgt", "task") if k in golden)
    want = exact(bin_dir, folder, model, setting, a.steps, shape)
    log = run(bin_dir, folder, model, setting, a.steps, golden, ranks, zero, accumulate, "fp16", a.flags)
    skipped = [r["step"] for r in log if r["skipped"]]
    if skipped and skipped[-1] > a.settle:
        raise Differs(f"skipped the updates {skipped}, wanted none after {a.settle}")
    ends = [float(np.mean([r["loss"] for r in rows[-a.last:]])) for rows in (log, want)]
    if not abs(ends[0] - ends[1]) <= a.within * ends[1]:
        raise Differs(f"ends at loss {ends[0]:.5f}, fp32 at {ends[1]:.5f}")
    return f"ends at {ends[0]:.5f}, fp32 {ends[1]:.5f}, started at {want[0]['loss']:.2f}; {len(skipped)} skipped, scale {log[-1]['loss_scale']:g}"


def main():
    p = arguments(__doc__, "adamw")
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--settle", type=int, default=20)
    p.add_argument("--last", type=int, default=20)
    p.add_argument("--within", type=float, default=0.02)
    p.add_argument("--flags", default="", help="more for shardc")
    a = p.parse_args()
    run_on(a.device, a.processes)
    a.flags += " --target cuda" * (a.device == "cuda")
    compare_all(a, "golden.json", lambda *case: check(a.bin, *case, a))


if __name__ == "__main__":
    main()
