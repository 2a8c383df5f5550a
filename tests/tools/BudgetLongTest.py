# SPDX-License-Identifier: Apache-2.0
"""200 random budgets for three models: a plan fits, is sound and has no races, or the error names a peak that is one.
BudgetLongTest.py BIN."""
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest

from common import BIN, LOGITS, MODELS, load_file, np, save_file

FLOOR = 64 << 20  # beside the plan, by the machine cpu
BUDGETS, STEPS = 200, 3
CASES = [("tiny-t5", "ts17-loss", 12, ["--ranks", "2", "--zero", "2"], []),
         ("tiny-deberta", "ts17-logits", 6, ["--ranks", "3", "--zero", "1", "--accumulate", "2"], LOGITS),
         ("tiny-mlp", "ts17-loss", 40, [], [])]


def number(text):
    return int(text.replace(",", ""))


class Budgets(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.plan = f"{self.folder}/m.plan"

    def tearDown(self):
        shutil.rmtree(self.folder)

    def tool(self, *command, code=0):
        r = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(r.returncode, code, f"{command}\n{r.stderr}")
        return r.stdout + r.stderr

    def peak(self, plan):
        """The largest live sum, from the text of the plan's buffers; and its arena."""
        text = self.tool(f"{BIN}/shardc-inspect", plan, "--text")
        changes, always = {}, 0
        for begin, end, life in re.findall(r"^ *buffer %.* s0\[(\d+), (\d+)\) (persistent|live\[\d+, \d+\))", text, re.M):
            size = (int(end) - int(begin) + 255) // 256 * 256
            if life == "persistent":
                always += size
                continue
            first, last = map(int, re.findall(r"\d+", life))
            changes[first] = changes.get(first, 0) + size
            changes[last] = changes.get(last, 0) - size
        live = most = always
        for position in sorted(changes):
            live += changes[position]
            most = max(most, live)
        return most, int(re.search(r"space 0 device bytes=(\d+)", text).group(1))

    def losses(self, model, *flags):
        self.tool(f"{BIN}/shardc-train", self.plan, "--data", f"{self.folder}/{model}", "--max-steps", str(STEPS), "--output-dir",
                  f"{self.folder}/out", "--learning-rate", "1e-3", "--quiet", *flags)
        return [json.loads(line)["loss"] for line in open(f"{self.folder}/out/log.jsonl")]

    def check_error(self, said, bound, budget):
        self.assertFalse(os.path.exists(self.plan), "a plan that does not fit was written")
        self.assertEqual(number(re.search(r"^peak: ([\d,]+) bytes", said, re.M).group(1)), bound)
        kinds, largest = re.search(r"by kind\n(.*?)\n\n.*?the largest\n(.*?)\n\n", said, re.S).groups()
        for table in kinds, largest:
            self.assertEqual(sum(number(line.split()[0]) for line in table.split("\n")), bound, said)
        self.assertLessEqual(len(largest.split("\n")), 11)
        self.assertRegex(said, rf"got [\d.]+ .iB \({budget:,} bytes\), wanted [\d.]+ .iB \([\d,]+ bytes\)")
        self.assertEqual("No packing can help" in said, bound + FLOOR > budget)
        return re.findall(r"^  (--.*?)  +[\d.]+ .iB ", said, re.M)

    def test_budgets(self):
        rng, fitted, refused, tried = random.Random(11), 0, 0, 0
        for case, (model, file, rows, flags, loss) in enumerate(CASES):
            golden = json.load(open(f"{MODELS}/{model}/golden.json"))
            data = load_file(f"{MODELS}/{model}/data.safetensors")
            pick = np.random.default_rng(5).integers(0, len(next(iter(data.values()))), 6 * rows * STEPS)
            save_file({k: np.ascontiguousarray(v[pick]) for k, v in data.items()}, f"{self.folder}/{model}")
            names = {"seq2seq": ("src", "tgt"), "classify": ("src",), "regress": ()}[golden["task"]]
            dims = f"batch={rows}" + "".join(f",{name}={golden[name]}" for name in names)
            command = [f"{BIN}/shardc", f"{MODELS}/{model}/{file}.onnx", "-o", self.plan, *loss]
            asked = ["--dim", dims, *flags]
            self.tool(*command, *asked)
            bound, arena = self.peak(self.plan)
            self.assertLessEqual(bound, arena)
            want, seen = self.losses(model), set()
            budgets = [FLOOR + bound - 1, FLOOR + bound, FLOOR + arena - 1, FLOOR + arena]
            budgets += [FLOOR + rng.randint(bound, arena) for _ in range(10)]
            while len(budgets) < BUDGETS * (case + 1) // len(CASES) - BUDGETS * case // len(CASES):
                budgets.append(FLOOR + rng.randint(bound // 3, arena * 6 // 5))
            for i, budget in enumerate(budgets):
                os.remove(self.plan) if os.path.exists(self.plan) else None
                r = subprocess.run([*command, *asked, "--memory", f"{budget}B"], capture_output=True, text=True, timeout=600)
                self.assertIn(r.returncode, (0, 3), r.stderr)
                if r.returncode == 0:
                    fitted += 1
                    self.assertGreaterEqual(budget, FLOOR + bound)
                    mine = self.peak(self.plan)
                    self.assertLessEqual(mine[1] + FLOOR, budget)
                    self.tool(f"{BIN}/shardc-inspect", self.plan, "--check")
                    content = open(self.plan, "rb").read()
                    if content not in seen:
                        seen.add(content)
                        self.assertEqual(self.losses(model, "--check-races", "--memory", f"{budget}B"), want)
                    continue
                refused += 1
                self.assertLess(budget, FLOOR + arena, "refused, though the plan without a budget fits")
                changes = self.check_error(r.stderr, bound, budget)
                for change in changes if i % 12 == 4 else []: # they do fit
                    tried += 1
                    words = change.split()
                    batch = [w for w in words if w.startswith("batch=")]
                    kept = [f for f in flags if f not in ("--ranks", "--zero", "--accumulate") and not f.isdigit()]
                    given = dict(zip(flags[::2], flags[1::2]))
                    given.update({a: b for a, b in zip(words[::2], words[1::2]) if a != "--dim"})
                    text = re.sub(r"batch=\d+", batch[0], dims) if batch else dims
                    self.tool(*command, "--dim", text, *kept, *[w for pair in given.items() for w in pair], "--memory", f"{budget}B")
        print(f"{fitted} budgets fit, {refused} are refused, {tried} changes that were named do fit", flush=True)
        self.assertEqual(fitted + refused, BUDGETS)
        for count in fitted, refused, tried:
            self.assertGreater(count, 20)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
