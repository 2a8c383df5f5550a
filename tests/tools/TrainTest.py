# SPDX-License-Identifier: Apache-2.0
"""shardc-train from outside, on a bundled model: files that NumPy and safetensors read and write, repeatability, evaluation,
Ctrl-C, flags. TrainTest.py BIN. What the numbers must be is the business of tests/golden."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from common import BIN, MODELS, load_file, np, save_file

MODEL = os.path.join(MODELS, "tiny-t5")


def call(*command, env=None):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ, **(env or {})))


class Train(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.golden = json.load(open(f"{MODEL}/golden.json"))
        cls.data = load_file(f"{MODEL}/data.safetensors")
        cls.plan = f"{cls.folder}/m.plan"
        g = cls.golden
        r = call(f"{BIN}/shardc", f"{MODEL}/ts17-loss.onnx", "-o", cls.plan, "--dim", f"batch={g['batch']},src={g['src']},tgt={g['tgt']}")
        assert r.returncode == 0, r.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def path(self, name):
        return f"{self.folder}/{self.id().split('.')[-1]}-{name}"

    def train(self, *flags, code=0, data=f"{MODEL}/data.safetensors", steps=4, env=None):
        r = call(f"{BIN}/shardc-train", self.plan, "--data", data, "--max-steps", str(steps), *flags, env=env)
        self.assertEqual(r.returncode, code, r.stderr)
        return r

    def losses(self, *flags, **more):
        out = self.path("out")
        self.train("--output-dir", out, *flags, **more)
        return [json.loads(line)["loss"] for line in open(f"{out}/log.jsonl") if '"loss"' in line]

    def test_files_of_every_kind_give_the_same_losses(self):
        want = self.losses("--no-shuffle")
        np.savez(self.path("stored.npz"), **self.data)
        np.savez_compressed(self.path("packed.npz"), extra=np.array(["text"]), **self.data)
        narrow = {k: v.astype(np.int32) for k, v in self.data.items()}
        save_file(narrow, self.path("int32.safetensors"))
        rows = len(next(iter(self.data.values())))
        save_file({k: np.ascontiguousarray(v[:11]) for k, v in self.data.items()}, self.path("first.safetensors"))
        np.savez(self.path("rest.npz"), **{k: v[11:] for k, v in self.data.items()})
        self.assertGreater(rows, 11)
        for name in "stored.npz", "packed.npz", "int32.safetensors":
            self.assertEqual(self.losses("--no-shuffle", data=self.path(name)), want, name)
        two = self.losses("--no-shuffle", "--data", self.path("rest.npz"), data=self.path("first.safetensors"))
        self.assertEqual(two, want)

    def test_a_seed_repeats_and_another_differs(self):
        first, again, other = self.losses(), self.losses(), self.losses("--seed", "7")
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertNotEqual(first, self.losses("--no-shuffle"))

    def test_weights_go_out_and_come_in(self):
        saved = self.path("w.safetensors")
        self.train("--save-weights", saved, "--learning-rate", "0", "--lr-scheduler-type", "constant")
        start = load_file(f"{MODEL}/golden.safetensors")
        weights = load_file(saved)
        for name, value in weights.items():
            key = next(k for k in ["param/" + name] + ["param/" + t for g in self.golden["tied"] if name in g for t in g] if k in start)
            np.testing.assert_array_equal(value, start[key], name)
        want = self.losses("--no-shuffle")
        self.assertEqual(self.losses("--no-shuffle", "--weights", saved), want)
        self.assertEqual(self.losses("--no-shuffle", "--weights", f"{MODEL}/ts17-loss.onnx"), want)
        moved = {k: v + 0.01 for k, v in weights.items()}
        save_file(moved, self.path("moved.safetensors"))
        self.assertNotEqual(self.losses("--no-shuffle", "--weights", self.path("moved.safetensors")), want)
        name = sorted(weights)[0]
        del moved[name]
        save_file(moved, self.path("less.safetensors"))
        r = self.train("--weights", self.path("less.safetensors"), code=1)
        self.assertIn(f"no values for 1 of {len(weights)} parameters: got none for {name}", r.stderr)
        r = self.train("--weights", self.path("less.safetensors"), "--init-weights", "normal")
        self.assertIn("initialised 1 parameters", r.stderr)

    def test_evaluation_does_not_change_training(self):
        out = self.path("out")
        want = self.losses("--no-shuffle")
        save_file({k: np.ascontiguousarray(v[:13]) for k, v in self.data.items()}, self.path("eval.safetensors"))
        got = self.losses("--no-shuffle", "--eval-data", self.path("eval.safetensors"), "--eval-steps", "2")
        self.assertEqual(got, want)
        evals = [json.loads(line) for line in open(f"{out}/log.jsonl") if "eval_loss" in line]
        self.assertEqual([e["step"] for e in evals], [2, 4])
        results = json.load(open(f"{out}/train_results.json"))
        self.assertEqual(results["eval_loss"], evals[-1]["eval_loss"])
        self.assertTrue(0 <= results["eval_accuracy"] <= 1)
        self.assertAlmostEqual(results["train_loss"], np.mean(want), 6)
        # The last batch of 13 rows is filled up with targets that do not count: the mean is that of the same rows in full batches.
        whole = {k: np.ascontiguousarray(np.concatenate([v[:13]] * self.golden["batch"])) for k, v in self.data.items()}
        save_file(whole, self.path("whole.safetensors"))
        frozen = ["--learning-rate", "0", "--lr-scheduler-type", "constant", "--output-dir", out]
        loss = []
        for name in "eval.safetensors", "whole.safetensors":
            self.train("--eval-data", self.path(name), *frozen, steps=1)
            loss.append(json.load(open(f"{out}/train_results.json"))["eval_loss"])
        self.assertAlmostEqual(loss[0], loss[1], 5)

    def test_log_has_the_promised_keys(self):
        out = self.path("out")
        r = self.train("--output-dir", out, "--learning-rate", "1e-3", "--warmup-steps", "2", steps=4)
        lines = [json.loads(line) for line in open(f"{out}/log.jsonl")]
        self.assertEqual([list(line) for line in lines], [["step", "loss", "learning_rate", "grad_norm", "step_ms", "samples_per_second", "tokens_per_second"]] * 4)
        for line in lines:      # as many as input_ids has elements in each row
            self.assertAlmostEqual(line["tokens_per_second"] / line["samples_per_second"], self.golden["src"], delta=0.01 * self.golden["src"])
        self.assertEqual([line["step"] for line in lines], [1, 2, 3, 4])
        self.assertEqual([line["learning_rate"] for line in lines], [0, 5e-4, 1e-3, 5e-4])
        self.assertIn("train_loss", r.stdout)
        self.assertIn("step 4/4 100%", r.stderr)
        self.assertNotIn("\r", r.stderr)

    def test_quiet_is_quiet(self):
        self.assertEqual(self.train("--quiet").stderr, "")

    def test_verbose_says_when_each_part_of_the_start_was_done(self):
        done = re.findall(r"^ *(\d+\.\d\d) s  (.*)$", self.train("-v").stderr, re.MULTILINE)
        self.assertEqual([what for _, what in done], ["plan, data and weights found", "weights filled", "ready for the first step"])
        seconds = [float(s) for s, _ in done]
        self.assertEqual(seconds, sorted(seconds))
        self.assertNotIn("weights filled", self.train().stderr)

    def test_clipping_by_norm_is_on_unless_switched_off(self):
        sgd = self.path("sgd.plan")
        g = self.golden
        call(f"{BIN}/shardc", f"{MODEL}/ts17-loss.onnx", "-o", sgd, "--optimizer", "sgd", "--dim", f"batch={g['batch']},src={g['src']},tgt={g['tgt']}")
        moved = []
        start = {k[6:]: v for k, v in load_file(f"{MODEL}/golden.safetensors").items() if k.startswith("param/")}
        for norm in "0", "0.125":
            saved, out = self.path("w.safetensors"), self.path("out")
            r = call(f"{BIN}/shardc-train", sgd, "--data", f"{MODEL}/data.safetensors", "--max-steps", "1", "--learning-rate", "1", "--no-shuffle",
                     "--lr-scheduler-type", "constant", "--max-grad-norm", norm, "--save-weights", saved, "--output-dir", out)
            self.assertEqual(r.returncode, 0, r.stderr)
            tied = lambda n: next((t for g in self.golden["tied"] if n in g for t in g if t in start), n)
            moved.append(np.sqrt(sum(np.sum((v.astype(np.float64) - start[tied(n)]) ** 2) for n, v in load_file(saved).items())))
            norm_logged = json.loads(open(f"{out}/log.jsonl").readline())["grad_norm"]
        self.assertAlmostEqual(moved[0] / norm_logged, 1, 4)  # plain SGD at rate 1 moves by the gradient
        self.assertAlmostEqual(moved[1] / 0.125, 1, 4)
        r = call(f"{BIN}/shardc-train", sgd, "--data", f"{MODEL}/data.safetensors", "--max-steps", "1", "--adam-beta1", "0.5")
        self.assertEqual((r.returncode, "--adam-beta1 is of no use here" in r.stderr), (1, True))

    def test_ctrl_c_finishes_the_step_and_saves(self):
        out = self.path("out")
        p = subprocess.Popen([f"{BIN}/shardc-train", self.plan, "--data", f"{MODEL}/data.safetensors", "--max-steps", "100000000",
                              "--output-dir", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        log = f"{out}/log.jsonl"
        for _ in range(600):
            if os.path.exists(log) and open(log).read().count("\n") >= 2:
                break
            time.sleep(0.1)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 130, err)
        steps = open(log).read().count("\n")
        self.assertIn(f"interrupted after step {steps} of 100000000", err)
        self.assertEqual(json.load(open(f"{out}/train_results.json"))["global_step"], steps)
        self.assertTrue(all(np.isfinite(v).all() for v in load_file(f"{out}/model.safetensors").values()))

    def test_disk_full(self):
        # A limit on file sizes answers like a full disk; the signal that comes with it must not end us.
        out = self.path("out")
        limited = f"ulimit -f 4; exec {BIN}/shardc-train {self.plan} --data {MODEL}/data.safetensors --max-steps 1000 --output-dir {out} --quiet"
        r = call("bash", "-c", limited)
        self.assertEqual(r.returncode, 4, r.stderr)
        self.assertIn("log.jsonl: cannot be written: File too large", r.stderr)
        self.assertFalse(os.path.exists(f"{out}/model.safetensors"))

    def test_a_trace_has_all_commands_and_a_table(self):
        r = self.train("--trace", self.path("t.json"), steps=2)
        events = [e for e in json.load(open(self.path("t.json")))["traceEvents"] if e["ph"] == "X"]
        plan = json.loads(call(f"{BIN}/shardc-inspect", self.plan, "--json").stdout)
        programs = {e["args"]["kernel"] for e in events}
        self.assertTrue({"matmul", "adamw", "attention"} <= programs, programs)
        measured, predicted = ([e for e in events if e["pid"] == pid] for pid in (1, 2))
        self.assertEqual(len(measured), len(predicted))
        self.assertLessEqual(len(measured), plan["commands"])   # all but those of eval
        self.assertRegex(r.stderr, "kernel +count +measured ms(.|\n)*\nall +%d " % len(measured))

    def test_calibrate(self):
        """A machine that the compiler reads, with rates that are of the size of NumPy's."""
        a, b = np.ones((512, 512), np.float32), np.ones((512, 512), np.float32)
        begin = time.time()
        for _ in range(20):
            a @ b
        flops = 20 * 2 * 512 ** 3 / (time.time() - begin)
        for ranks in 1, 2:
            machine = self.path(f"{ranks}.json")
            r = call(f"{BIN}/shardc-train", "--calibrate", machine, "--device", "cpu", "--ranks", str(ranks))
            self.assertEqual(r.returncode, 0, r.stderr)
            m = json.load(open(machine))
            self.assertEqual("link_bandwidth" in m, ranks > 1)
            for key, value in m.items():
                if key not in ("base", "name"):
                    self.assertGreaterEqual(value, 0, key)
            self.assertLess(flops / 100, m["flops"])
            self.assertLess(m["flops"], flops * 100)
            self.assertLess(1e8, m["memory_bandwidth"])
            self.assertLess(m["memory_bandwidth"], 1e12)
            self.assertLess(m["command_us"], 1000)
            self.assertGreaterEqual(m.get("overlap_slowdown", 1), 1)
            g = self.golden
            r = call(f"{BIN}/shardc", f"{MODEL}/ts17-loss.onnx", "-o", self.path("m.plan"), "--machine", machine, "--ranks", str(ranks), "--dim",
                     f"batch={g['batch']},src={g['src']},tgt={g['tgt']}")
            self.assertEqual(r.returncode, 0, r.stderr)
        r = call(f"{BIN}/shardc-train", self.plan, "--calibrate", machine)
        self.assertEqual((r.returncode, "--calibrate trains nothing" in r.stderr), (1, True))

    def test_what_is_not_built_yet_is_refused_by_name(self):
        for flags in (["--resume"], ["--resume=latest"], ["--export", "x.onnx"],
                      ["--save-steps", "5"], ["--save-total-limit", "2"]):
            r = self.train(*flags, code=1)
            self.assertRegex(r.stderr, f"shardc: error: {flags[0].split('=')[0]}.* is not built yet")
        self.train("--ranks", "1", "--device", "cpu", "--save-steps", "0", steps=1)

    def test_launchers(self):
        self.train(steps=1, env={"WORLD_SIZE": "1", "RANK": "0"})
        r = self.train(steps=1, code=1, env={"WORLD_SIZE": "2"})
        self.assertIn("environment: WORLD_SIZE is 2, but RANK is not set", r.stderr)
        # More is in TrainRanksTest.py.


if __name__ == "__main__":
    unittest.main(warnings="ignore")
