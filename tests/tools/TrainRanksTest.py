# SPDX-License-Identifier: Apache-2.0
"""shardc-train over many ranks, as threads and as processes: the numbers of one rank, repeatable; who dies or differs is named.
TrainRanksTest.py BIN."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from common import BIN, MODELS, load_file, np, save_file

MODEL = os.path.join(MODELS, "tiny-t5")
DATA = f"{MODEL}/data.safetensors"
GOLDEN = json.load(open(f"{MODEL}/golden.json"))
ROWS = 8                                                   # of a step, in all plans


def environment(rank=None, ranks=None, job="0"):
    """As torchrun leaves it, or none of it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM_", "RANK", "WORLD_", "LOCAL_WORLD_"))}
    if rank is None:
        return clean
    return dict(clean, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="localhost",
                MASTER_PORT="29500", TORCHELASTIC_RUN_ID=f"{os.getpid()}-{job}")


class TrainRanks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.plans = {}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def path(self, name):
        return f"{self.folder}/{self.id().split('.')[-1]}-{name}"

    def plan(self, ranks=1, zero=0, accumulate=1):
        key = ranks, zero, accumulate
        if key not in self.plans:
            path = f"{self.folder}/{ranks}-{zero}-{accumulate}.plan"
            r = subprocess.run([f"{BIN}/shardc", f"{MODEL}/ts17-loss.onnx", "-o", path, "--ranks", str(ranks), "--zero", str(zero), "--accumulate",
                                str(accumulate), "--dim", f"batch={ROWS // ranks // accumulate},src={GOLDEN['src']},tgt={GOLDEN['tgt']}"],
                               capture_output=True, text=True)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.plans[key] = path
        return self.plans[key]

    def command(self, plan, *flags, steps=4):
        return [f"{BIN}/shardc-train", plan, "--data", DATA, "--max-steps", str(steps), *flags]

    def train(self, plan, *flags, code=0, steps=4):
        r = subprocess.run(self.command(plan, *flags, steps=steps), capture_output=True, text=True, timeout=300, env=environment())
        self.assertEqual(r.returncode, code, r.stderr)
        return r

    def losses(self, folder):
        return [json.loads(line)["loss"] for line in open(f"{folder}/log.jsonl") if '"loss"' in line]

    def start(self, plans, *flags, steps=4, size=None):
        """A process for each plan, its place in the list being its rank."""
        job = self.id()
        return [subprocess.Popen(self.command(plan, *flags, steps=steps), env=environment(rank, size or len(plans), job), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank, plan in enumerate(plans)]

    def finish(self, processes, timeout=120):
        said = [p.communicate(timeout=timeout) for p in processes]
        return [(p.returncode, out, err) for p, (out, err) in zip(processes, said)]

    def wait_for_steps(self, folder, steps, processes):
        log = f"{folder}/log.jsonl"
        for _ in range(600):
            if os.path.exists(log) and open(log).read().count("\n") >= steps:
                return
            self.assertTrue(all(p.poll() is None for p in processes))
            time.sleep(0.1)
        self.fail("no step in a minute")

    def test_any_cut_gives_the_numbers_of_one_rank(self):
        def run(plan):
            out = self.path("out")
            flags = ["--output-dir", out, "--eval-data", DATA, "--eval-steps", "2", "--dump-gradients", self.path("g"), "--learning-rate", "1e-3"]
            self.train(plan, *flags, "--quiet")
            evals = [json.loads(line)["eval_loss"] for line in open(f"{out}/log.jsonl") if "eval_loss" in line]
            return self.losses(out), evals, load_file(self.path("g")), load_file(f"{out}/model.safetensors")

        want = run(self.plan())
        for cut in (2, 0, 2), (2, 1, 1), (4, 2, 2), (2, 3, 4), (4, 3, 1), (8, 3, 1), (4, 1, 2):
            plan = self.plan(*cut)
            got = run(plan)
            np.testing.assert_allclose(got[0], want[0], rtol=5e-6, err_msg=str(cut))
            np.testing.assert_allclose(got[1], want[1], rtol=5e-6, err_msg=str(cut))
            for i, tolerance in (2, 1e-5), (3, 1e-4):
                self.assertEqual(got[i].keys(), want[i].keys())
                for name, value in want[i].items():
                    self.assertEqual(got[i][name].shape, value.shape)
                    np.testing.assert_allclose(got[i][name], value, atol=tolerance * max(1, np.abs(value).max()), err_msg=f"{cut} {name}")

    def test_a_run_repeats_bit_by_bit(self):
        plan, files = self.plan(4, 3, 2), []
        for i in range(2):
            self.train(plan, "--save-weights", self.path("w"), "--output-dir", self.path("out"), "--quiet")
            files.append((open(self.path("w"), "rb").read(), self.losses(self.path("out"))))
        self.assertEqual(files[0], files[1])

    def test_check_races(self):
        want = self.path("plain")
        self.train(self.plan(2, 3), "--output-dir", want, "--quiet")
        self.train(self.plan(2, 3), "--output-dir", self.path("checked"), "--quiet", "--check-races", "--eval-data", DATA, steps=4)
        self.assertEqual(self.losses(self.path("checked")), self.losses(want))

    def test_processes_are_like_threads(self):
        plan = self.plan(4, 3)
        self.train(plan, "--output-dir", self.path("threads"), "--eval-data", DATA, "--quiet")
        ends = self.finish(self.start([plan] * 4, "--output-dir", self.path("processes"), "--eval-data", DATA))
        self.assertEqual([code for code, _, _ in ends], [0] * 4, ends)
        self.assertIn("train_loss", ends[0][1])
        self.assertIn("step 4/4", ends[0][2])
        for _, out, err in ends[1:]:
            self.assertEqual((out, err), ("", ""))
        self.assertEqual(self.losses(self.path("processes")), self.losses(self.path("threads")))
        for name in "model.safetensors",:
            self.assertEqual(*(open(f"{self.path(k)}/{name}", "rb").read() for k in ("threads", "processes")))

    def children(self, process):
        return [int(pid) for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()]

    def start_own(self, ranks, out):
        """One process, which starts the others itself; returns it and those, when all train."""
        process = subprocess.Popen(self.command(self.plan(ranks, 3), "--processes", "--output-dir", out, "--quiet", steps=10 ** 6), env=environment(),
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_for_steps(out, 2, [process])
        children = self.children(process)
        self.assertEqual(len(children), ranks)
        return process, children

    def assert_gone(self, pids, seconds):
        end = time.time() + seconds
        while any(os.path.exists(f"/proc/{pid}") and " Z " not in open(f"/proc/{pid}/stat").read() for pid in pids):
            self.assertLess(time.time(), end, "a rank is left")
            time.sleep(0.1)

    def test_own_processes_are_like_threads(self):
        plan = self.plan(4, 3)
        self.train(plan, "--output-dir", self.path("threads"), "--eval-data", DATA, "--quiet")
        r = self.train(plan, "--output-dir", self.path("processes"), "--eval-data", DATA, "--processes")
        self.assertEqual(r.stdout.count("train_loss"), 1)
        self.assertEqual(self.losses(self.path("processes")), self.losses(self.path("threads")))
        r = self.train(plan, "--processes", "--weights", "none.safetensors", code=1)
        self.assertEqual(r.stderr.count("shardc: error"), 1, r.stderr)   # before any rank is started

    def test_one_of_its_processes_is_killed(self):
        process, children = self.start_own(3, self.path("out"))
        os.kill(children[1], signal.SIGKILL)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 4, err)
        self.assertIn("shardc: error: rank 1: its process ended", err)
        self.assert_gone(children, 0)

    def test_stops_its_processes(self):
        out = self.path("out")
        process, children = self.start_own(2, out)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(json.load(open(f"{out}/train_results.json"))["global_step"], len(self.losses(out)))
        process, children = self.start_own(2, self.path("twice"))    # the second one does not wait for the step
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assert_gone(children, 0)
        process, children = self.start_own(2, self.path("out2"))
        process.kill()
        process.communicate(timeout=30)
        self.assert_gone(children, 30)

    def test_stops_its_processes_before_the_first_step(self):
        """Whatever they are about when asked, all end in good order: none waits for another."""
        for ask, after in (signal.SIGTERM, 0), (signal.SIGINT, 0.02), (signal.SIGTERM, 0.1):
            out = self.path(f"out{after}")
            process = subprocess.Popen(self.command(self.plan(3, 3), "--processes", "--output-dir", out, "--quiet", steps=10 ** 6), env=environment(),
                                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while not self.children(process):
                self.assertIsNone(process.poll())
            time.sleep(after)
            process.send_signal(ask)
            _, err = process.communicate(timeout=20)
            self.assertEqual(process.returncode, 130, err)
            self.assertTrue(all(np.isfinite(v).all() for v in load_file(f"{out}/model.safetensors").values()))

    def test_processes_check_races(self):
        ends = self.finish(self.start([self.plan(2, 3)] * 2, "--check-races", "--output-dir", self.path("out"), "--quiet"))
        self.assertEqual([code for code, _, _ in ends], [0] * 2, ends)

    def test_a_killed_process_brings_all_down(self):
        for victim in 1, 0:
            out = self.path(f"out{victim}")
            processes = self.start([self.plan(4, 3)] * 4, "--output-dir", out, "--quiet", steps=10 ** 6)
            self.wait_for_steps(out, 2, processes)
            processes[victim].kill()
            begin = time.time()
            ends = self.finish(processes, timeout=30)
            self.assertLess(time.time() - begin, 10)
            for rank, (code, _, err) in enumerate(ends):
                if rank != victim:
                    self.assertEqual(code, 4, err)
                    self.assertIn(f"shardc: error: rank {victim}: ", err)
                    self.assertNotIn("Traceback", err)
            self.assertGreaterEqual(len(self.losses(out)), 2)   # what was logged is kept

    def test_different_plans(self):
        ends = self.finish(self.start([self.plan(2, 3), self.plan(2, 0)], "--output-dir", self.path("out")))
        for code, _, err in ends:
            self.assertEqual(code, 1, err)
            self.assertRegex(err, "shardc: error: .*plan")
        self.assertFalse(os.path.exists(f"{self.path('out')}/log.jsonl"))

    def test_one_process_cannot_start(self):
        ends = self.finish(self.start([self.plan(2, 3), self.path("none.plan")], "--output-dir", self.path("out")))
        for code, _, err in ends:
            self.assertEqual(code, 1, err)
            self.assertIn("none.plan: cannot be read: No such file or directory", err)

    def test_more_processes_than_ranks(self):
        ends = self.finish(self.start([self.plan(2, 3)] * 3))
        for code, _, err in ends:
            self.assertEqual(code, 1, err)
            self.assertIn("got 3 processes, wanted 2", err)

    def stop_by(self, plan, processes, out, *signalled):
        self.wait_for_steps(out, 2, processes)
        for p in signalled:
            p.send_signal(signal.SIGINT)
        ends = self.finish(processes)
        self.assertEqual([code for code, _, _ in ends], [130] * len(processes), ends)
        steps = len(self.losses(out))
        self.assertIn(f"interrupted after step {steps} of 1000000", ends[0][2])
        self.assertEqual(json.load(open(f"{out}/train_results.json"))["global_step"], steps)
        self.assertTrue(all(np.isfinite(v).all() for v in load_file(f"{out}/model.safetensors").values()))

    def test_ctrl_c_stops_all_after_one_step(self):
        out, plan = self.path("threads"), self.plan(4, 3)
        threads = [subprocess.Popen(self.command(plan, "--output-dir", out, steps=10 ** 6), env=environment(), text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)]
        self.stop_by(plan, threads, out, threads[0])
        out = self.path("processes")
        processes = self.start([plan] * 4, "--output-dir", out, steps=10 ** 6)
        self.stop_by(plan, processes, out, processes[2])       # whichever hears of it

    def test_disk_full(self):
        out = self.path("out")
        command = " ".join(self.command(self.plan(2, 3), "--output-dir", out, "--quiet", steps=1000))
        r = subprocess.run(["bash", "-c", f"ulimit -f 4; exec {command}"], capture_output=True, text=True, timeout=120, env=environment())
        self.assertEqual(r.returncode, 4, r.stderr)
        self.assertIn("log.jsonl: cannot be written: File too large", r.stderr)

    def test_rows_of_all_ranks_are_needed(self):
        save_file({k: np.ascontiguousarray(v[:7]) for k, v in load_file(DATA).items()}, self.path("few"))
        r = subprocess.run([f"{BIN}/shardc-train", self.plan(2, 3, 2), "--data", self.path("few"), "--max-steps", "1"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertIn("too few rows: got 7, wanted at least 8 (batch 2 x ranks 2 x accumulate 2)", r.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
