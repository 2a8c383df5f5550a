# SPDX-License-Identifier: Apache-2.0
"""Two ranks as processes, by NCCL: the numbers of ranks that share a device, bit by bit; one that dies takes the other along.

    nccl_ranks.py BIN MODEL... [--one-gpu] [--zero 0,1,2,3] [--accumulate 1,2] [--precision fp32,bf16] [--jobs N]

MODEL is an .onnx with data.safetensors and golden.json beside it. With --one-gpu both use one device: NCCL takes them for two hosts that talk by
sockets, which is slow and says nothing of speed, but graphs, registered memory, errors and ends are those of two devices. A line for each case, as it ends; as many
as --jobs share the devices. Exit code 77: no devices.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from golden import SETTINGS, Differs, call, compile_plan, read_log  # noqa: E402

STEPS, LIMIT = 10, 30


def environment(rank, one_gpu, job):
    """As torchrun leaves it."""
    env = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT="29500",
               TORCHELASTIC_RUN_ID=job)
    if one_gpu:
        env.update(NCCL_HOSTID=f"shardc-{rank}", NCCL_NET="Socket", NCCL_SOCKET_IFNAME="lo", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    return env


def command(a, plan, folder, out, steps, *flags):
    return [f"{a.bin}/shardc-train", plan, "--data", f"{folder}/data.safetensors", "--max-steps", str(steps), "--output-dir", out, "--device", "cuda",
            *SETTINGS["adamw-clip-linear"][1].split(), *flags]


def start(a, plan, folder, out, steps, *flags):
    return [subprocess.Popen(command(a, plan, folder, out, steps, *flags), env=environment(rank, a.one_gpu, out.replace("/", "-")), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]


def finish(processes, timeout):
    ends = []
    for p in processes:
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for q in processes:
                q.kill()
            raise Differs(f"rank {len(ends)} still runs after {timeout} s: {p.communicate()[1][-300:]}")
        ends.append((p.returncode, out, err))
    return ends


def results(out):
    with open(f"{out}/model.safetensors", "rb") as weights:
        return [(line["loss"], line["grad_norm"]) for line in read_log(out)], weights.read()


def compile_for_two(a, model, tmp, zero, accumulate, precision):
    with open(f"{os.path.dirname(model)}/golden.json") as f:
        golden = json.load(f)
    compile_plan(a.bin, model, f"{tmp}/m.plan", golden, "adamw", 2, zero=zero, accumulate=accumulate, extra=["--precision", precision])
    return f"{tmp}/m.plan"


def check(a, model, zero, accumulate, precision):
    folder = os.path.dirname(model)
    with tempfile.TemporaryDirectory() as tmp:
        plan = compile_for_two(a, model, tmp, zero, accumulate, precision)
        env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
        shared = subprocess.run(command(a, plan, folder, f"{tmp}/shared", STEPS), capture_output=True, text=True, timeout=300,
                                env=dict(env, CUDA_VISIBLE_DEVICES="0"))
        if shared.returncode:
            raise Differs(f"on one device: {shared.stderr[-300:]}")
        wanted = results(f"{tmp}/shared")
        runs = {"nccl": [], "nccl without graphs": ["--no-cuda-graphs"]}
        for i, (what, flags) in enumerate(runs.items()):
            for code, _, err in finish(start(a, plan, folder, f"{tmp}/{i}", STEPS, *flags), timeout=120):
                if code:
                    raise Differs(f"{what}: exit code {code}: {err[-500:]}")
            compare(what, results(f"{tmp}/{i}"), wanted)
        if not a.one_gpu: # one process, which starts them itself
            r = subprocess.run(command(a, plan, folder, f"{tmp}/own", STEPS), capture_output=True, text=True, timeout=300, env=env)
            if r.returncode:
                raise Differs(f"own processes: exit code {r.returncode}: {r.stderr[-500:]}")
            compare("own processes", results(f"{tmp}/own"), wanted)


def compare(what, got, wanted):
    for step, (x, y) in enumerate(zip(got[0], wanted[0]), 1):
        if x != y:
            raise Differs(f"{what}: step {step}: loss, norm {x}, wanted {y}")
    if len(got[0]) != len(wanted[0]) or got[1] != wanted[1]:
        raise Differs(f"{what}: steps or weights differ")


def check_death(a, model, victim):
    """The other one says who has died, and is gone soon."""
    folder = os.path.dirname(model)
    with tempfile.TemporaryDirectory() as tmp:
        out = f"{tmp}/out"
        processes = start(a, compile_for_two(a, model, tmp, 3, 1, "fp32"), folder, out, 10 ** 6, "--quiet")
        for _ in range(600):
            if os.path.exists(f"{out}/log.jsonl") and open(f"{out}/log.jsonl").read().count("\n") >= 3:
                break
            if any(p.poll() is not None for p in processes):
                raise Differs(f"ended too early: {[e[2][-300:] for e in finish(processes, 30)]}")
            time.sleep(0.1)
        processes[victim].send_signal(signal.SIGKILL)
        begin = time.time()
        code, _, err = finish(processes, LIMIT)[1 - victim]
        if code != 4 or f"shardc: error: rank {victim}: " not in err:
            raise Differs(f"exit code {code}, wanted 4: {err[-500:]}")
        return time.time() - begin


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("models", nargs="+")
    p.add_argument("--one-gpu", action="store_true")
    p.add_argument("--zero", default="0,1,2,3")
    p.add_argument("--accumulate", default="1,2")
    p.add_argument("--precision", default="fp32,bf16")
    p.add_argument("--jobs", type=int, default=4)
    a = p.parse_args()
    bad, cases = 0, list(itertools.product(a.models, map(int, a.zero.split(",")), map(int, a.accumulate.split(",")), a.precision.split(",")))

    def run(case):
        begin = time.time()
        try:
            check(a, *case)
            return f"ok   {' '.join(map(str, case))}: {time.time() - begin:.1f} s"
        except (Differs, subprocess.TimeoutExpired) as e:
            return f"BAD  {' '.join(map(str, case))}: {e}"

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for line in concurrent.futures.as_completed([pool.submit(run, case) for case in cases]):
            bad += line.result().startswith("BAD")
            print(line.result(), flush=True)
    seconds = []
    for victim in 0, 1:
        try:
            seconds.append(check_death(a, a.models[0], victim))
        except Differs as e:
            bad += 1
            print(f"BAD  rank {victim} killed: {e}", flush=True)
    print(f"{len(cases) + 2 - bad} of {len(cases) + 2} right; gone after a death in {', '.join(f'{s:.1f}' for s in seconds)} s")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
