# SPDX-License-Identifier: Apache-2.0
"""t5-small on the CPU beside PyTorch, measured in turns on the same machine: bench_cpu.py BIN --shared DIR --torch PYTHON

BIN is a release build; PYTHON has torch and transformers (peers/torch_cpu_train.py of DIR). fp32, dropout 0, AdamW, clipping,
src = tgt = 128. Prints the step times and their ratio, resident memory beside the plan's arena, and the time from the command
line to the end of the first step (compiled, checked, loaded, first step in the log).
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
from safetensors.numpy import save_file

MIB = 1 << 20


def timed(command, threads):
    """Wall seconds and the largest resident size in bytes; ends the program when the command fails."""
    start = time.time()
    child = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nexits with {child.returncode}: {output[-2000:]}")
    return time.time() - start, usage.ru_maxrss * 1024, output


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("--shared", required=True)
    p.add_argument("--torch", required=True)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--steps", type=int, default=7)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    rng, rows = np.random.default_rng(0), a.batch * (a.steps + 2)
    with tempfile.TemporaryDirectory() as tmp:
        ids = lambda: rng.integers(2, 32128, (rows, 128), dtype=np.int64)
        save_file(dict(input_ids=ids(), attention_mask=np.ones((rows, 128), np.int64), labels=ids()), f"{tmp}/data.safetensors")
        compiling, compiler_rss, _ = timed(
            [f"{a.bin}/shardc", f"{a.shared}/models/full/t5-small-ts17.onnx", "-o", f"{tmp}/m.plan", "--dropout", "0",
             "--dim", f"batch={a.batch},src=128,tgt=128"], a.threads)
        plan = json.loads(timed([f"{a.bin}/shardc-inspect", f"{tmp}/m.plan", "--json"], a.threads)[2])

        def command(steps, out):
            return [f"{a.bin}/shardc-train", f"{tmp}/m.plan", "--data", f"{tmp}/data.safetensors", "--init-weights", "normal",
                    "--max-steps", str(steps), "--learning-rate", "3e-5", "--output-dir", f"{tmp}/{out}", "--quiet"]

        def first_step():
            log, begin = f"{tmp}/first/log.jsonl", time.time()
            child = subprocess.Popen(command(1, "first"), stdout=subprocess.DEVNULL)
            while child.poll() is None and not (os.path.exists(log) and os.path.getsize(log)):
                time.sleep(0.01)
            seconds = time.time() - begin
            if child.wait():
                raise SystemExit("shardc-train fails")
            return seconds

        def shardc(steps, out):
            _, rss, _ = timed(command(steps, out), a.threads)
            with open(f"{tmp}/{out}/log.jsonl") as f:
                times = [r["step_ms"] for r in map(json.loads, f) if "step_ms" in r]
            return rss, statistics.median(times[2:])

        def torch():
            text = timed([a.torch, f"{a.shared}/peers/torch_cpu_train.py", "t5-small", "--batch", a.batch, "--threads", a.threads,
                          "--steps", a.steps], a.threads)[2]
            row = next(line for line in text.splitlines() if line.startswith("ROW {"))  # between warnings
            return json.loads(row.removeprefix("ROW "))["ms"]

        start = compiling + first_step()
        ours, theirs, rss = [], [], 0
        for r in range(a.rounds):
            resident, ms = shardc(a.steps + 2, f"round-{r}")
            rss = max(rss, resident)
            ours.append(ms)
            theirs.append(torch())
            print(f"round {r}: shardc {ms:.1f} ms, torch {theirs[-1]:.1f} ms", flush=True)
    print(f"step: {min(ours):.1f} ms, PyTorch {min(theirs):.1f} ms, ratio {min(ours) / min(theirs):.2f} (wanted: at most 1.5, goal 0.8)")
    print(f"memory: resident {rss / MIB:.0f} MiB, arena {plan['peak_bytes'] / MIB:.0f} MiB, "
          f"difference {(rss - plan['peak_bytes']) / MIB:.0f} MiB (wanted: at most 200)")
    print(f"start: {start:.1f} s, {compiling:.1f} s of it compiling in {compiler_rss / MIB:.0f} MiB (wanted: at most 5)")


if __name__ == "__main__":
    main()
