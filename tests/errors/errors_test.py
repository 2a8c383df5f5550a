# SPDX-License-Identifier: Apache-2.0
"""Runs the command lines of cases.txt and compares exit code and stderr, word for word: errors_test.py BIN [--update] [TEXT]

A case is a paragraph: `# what is wrong`, `$ command` lines (one shell script), then `exit N` and the stderr of it all. Every
case has a folder of its own, with models/*.onnx, the data files made below and good.plan, nan.plan. --update writes what the
tools say now into cases.txt (read the difference!); TEXT picks the cases that contain it.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

try:
    import numpy as np
    from safetensors.numpy import save_file
except ImportError as e:
    print(f"skipped: {e}; tools/setup.sh makes an environment that has it")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
DIMS = "--dim batch=4,seq=6 --loss cross_entropy --logits logits --labels labels"


def raw(path, header, body=b"", length=None):
    """A safetensors file with any header, true or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text) if length is None else length) + text + body)


def make_data(folder):
    rng = np.random.default_rng(1)
    ids, labels = rng.integers(0, 10, (16, 6)), rng.integers(0, 3, 16)

    def put(array, at, value):
        array = array.copy()
        array[at] = value
        return array

    sets = {
        "train": dict(ids=ids, labels=labels),
        "label-high": dict(ids=ids, labels=put(labels, 5, 3)),
        "label-negative": dict(ids=ids, labels=put(labels, 5, -1)),
        "token-high": dict(ids=put(ids, (7, 2), 10), labels=labels),
        "token-negative": dict(ids=put(ids, (7, 2), -11), labels=labels),
        "no-labels": dict(ids=ids),
        "float-ids": dict(ids=ids.astype(np.float32), labels=labels),
        "narrow": dict(ids=ids[:, :5].copy(), labels=labels),
        "flat": dict(ids=ids[:, 0].copy(), labels=labels),
        "few": dict(ids=ids[:3], labels=labels[:3]),
        "uneven": dict(ids=ids, labels=labels[:12]),
    }
    for name, arrays in sets.items():
        save_file(arrays, f"{folder}/{name}.safetensors")
    np.savez(f"{folder}/train.npz", **sets["train"])
    whole = open(f"{folder}/train.npz", "rb").read()
    open(f"{folder}/cut.npz", "wb").write(whole[:len(whole) // 2])
    whole = open(f"{folder}/train.safetensors", "rb").read()
    open(f"{folder}/cut.safetensors", "wb").write(whole[:-10])
    entry = lambda first, last, dims=(16, 6): dict(dtype="I64", shape=list(dims), data_offsets=[first, last])
    raw(f"{folder}/header-long.safetensors", b"{}", length=1 << 62)
    raw(f"{folder}/header-broken.safetensors", b'{"ids": [')
    raw(f"{folder}/past-end.safetensors", {"ids": entry(0, 768)}, bytes(100))
    raw(f"{folder}/backwards.safetensors", {"ids": entry(768, 0)}, bytes(768))
    raw(f"{folder}/overflow.safetensors", {"ids": entry(0, 768, (1 << 33, 1 << 33))}, bytes(768))
    raw(f"{folder}/dtype.safetensors", {"ids": dict(entry(0, 768), dtype="Q7")}, bytes(768))
    open(f"{folder}/weights.bin", "wb").write(np.linspace(-0.5, 0.5, 20, dtype=np.float32).tobytes())


def make_folder(bin_dir, folder):
    shutil.copytree(f"{HERE}/models", folder)
    make_data(folder)
    with open(f"{folder}/file", "w") as f:                # where a folder is wanted
        f.write("text")
    for model in "good", "nan":
        subprocess.run(f"{bin_dir}/shardc {model}.onnx -o {model}.plan {DIMS}", shell=True, cwd=folder, check=True, capture_output=True)


def read_cases():
    text = open(f"{HERE}/cases.txt").read()
    head, *rest = re.split(r"\n\n(?=# )", text.rstrip("\n"))
    cases = []
    for paragraph in rest:
        lines = paragraph.splitlines()
        script = [l[2:] for l in lines[1:] if l.startswith("$ ")]
        cases.append((lines[0], script, "\n".join(lines[1 + len(script):])))
    return head, cases


def run(bin_dir, template, script, can_mount):
    if any("unshare" in l for l in script) and not can_mount:
        return None
    with tempfile.TemporaryDirectory() as tmp:
        folder = f"{tmp}/case"
        shutil.copytree(template, folder)
        r = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, text=True, errors="replace", timeout=120, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}", D=DIMS))
        return f"exit {r.returncode}\n{r.stderr}".rstrip("\n").replace(folder, "DIR")


def main():
    arguments = [x for x in sys.argv[1:] if x != "--update"]
    bin_dir, wanted = os.path.abspath(arguments[0]), " ".join(arguments[1:])
    head, cases = read_cases()
    can_mount = subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    bad = skipped = 0
    with tempfile.TemporaryDirectory() as tmp, ThreadPoolExecutor(2) as pool:
        make_folder(bin_dir, f"{tmp}/template")
        picked = [c for c in cases if wanted in "\n".join([c[0], *c[1], c[2]])]
        results = list(pool.map(lambda c: run(bin_dir, f"{tmp}/template", c[1], can_mount), picked))
    said = dict(zip([c[0] for c in picked], results))
    for title, script, expected in picked:
        if said[title] is None:
            skipped += 1
            print(f"skipped: {title[2:]}: no right to mount a small file system")
        elif said[title] != expected:
            bad += 1
            print(f"BAD {title[2:]}\n  wanted:\n{expected}\n  got:\n{said[title]}\n")
    if "--update" in sys.argv:
        with open(f"{HERE}/cases.txt", "w") as f:
            for title, script, expected in cases:
                now = said.get(title) or expected
                head += f"\n\n{title}\n" + "".join(f"$ {l}\n" for l in script) + now
            f.write(head + "\n")
    print(f"{len(picked) - bad - skipped} of {len(picked)} as expected, {skipped} skipped")
    sys.exit(1 if bad and "--update" not in sys.argv else 0)


if __name__ == "__main__":
    main()
