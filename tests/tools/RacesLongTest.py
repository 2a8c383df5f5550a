# SPDX-License-Identifier: Apache-2.0
"""Runs of many ranks under --check-races, at all stages, and dropout that does not depend on how a step is cut (what else must not
is in tests/golden/cuts.py). RacesLongTest.py BIN."""
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from common import BIN, LOGITS, MODELS, load_file, np, save_file

ROWS, STEPS = 24, 6


class Races(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        rng = np.random.default_rng(7)
        for model in "tiny-t5", "tiny-deberta":
            data = load_file(f"{MODELS}/{model}/data.safetensors")
            rows = rng.integers(0, len(next(iter(data.values()))), ROWS * STEPS)
            save_file({k: np.ascontiguousarray(v[rows]) for k, v in data.items()}, f"{self.folder}/{model}")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_tool(self, *command):
        r = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(r.returncode, 0, f"{command}\n{r.stderr}")

    def compile(self, model, ranks, zero, accumulate, rows=ROWS):
        golden = json.load(open(f"{MODELS}/{model}/golden.json"))
        has_loss = os.path.exists(f"{MODELS}/{model}/ts17-loss.onnx")
        dims = f"batch={rows // ranks // accumulate},src={golden['src']}" + (f",tgt={golden['tgt']}" if golden["task"] == "seq2seq" else "")
        self.run_tool(f"{BIN}/shardc", f"{MODELS}/{model}/ts17-{'loss' if has_loss else 'logits'}.onnx", "-o", f"{self.folder}/m.plan", "--dim", dims,
                      "--ranks", str(ranks), "--zero", str(zero), "--accumulate", str(accumulate), "--dropout", "0.1", *([] if has_loss else LOGITS))

    def losses(self, model, *flags, steps=STEPS):
        self.run_tool(f"{BIN}/shardc-train", f"{self.folder}/m.plan", "--data", f"{self.folder}/{model}", "--max-steps", str(steps), "--output-dir",
                      f"{self.folder}/out", "--learning-rate", "1e-3", "--max-grad-norm", "0.5", "--quiet", *flags)
        return [json.loads(line)["loss"] for line in open(f"{self.folder}/out/log.jsonl")]

    def test_dropout_is_that_of_one_rank(self):
        for model in "tiny-t5", "tiny-deberta":
            self.compile(model, 1, 0, 1)
            want = self.losses(model)
            for cut in (2, 0, 1), (3, 3, 2), (4, 1, 3), (2, 2, 4), (8, 3, 1):
                self.compile(model, *cut)
                np.testing.assert_allclose(self.losses(model), want, rtol=5e-6, err_msg=f"{model} {cut}")

    def test_no_cut_has_races(self):
        for model, zero, accumulate in itertools.product(("tiny-t5", "tiny-deberta"), range(4), (1, 3)):
            with self.subTest(model=model, zero=zero, accumulate=accumulate):
                self.compile(model, 3, zero, accumulate, rows=18)
                self.assertEqual(self.losses(model, "--check-races", steps=4), self.losses(model, steps=4))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
