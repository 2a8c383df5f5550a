#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py ROOT: checks that includes go downwards only, and the house rules that a program can see.

Prints `FILE:LINE: what is wrong` and exits 1 if anything is.
"""
import os
import re
import sys

BASE = ["ir/base/"]
PLAN = BASE + ["ir/plan/"]
GRAPH = BASE + ["ir/graph/", "ir/ops/"]

# Folder -> what its files may include, beside files of their own folder, LLVM and the standard library.
# The longest folder that fits a file counts.
LAYERS = {
    "ir/base/": BASE,
    "ir/plan/": PLAN,
    "ir/graph/": GRAPH,
    "ir/ops/": GRAPH,
    "frontend/": GRAPH + ["frontend/", "onnx/"],
    "passes/": GRAPH + PLAN + ["passes/"],
    "runtime/": PLAN + ["runtime/"],
    "runtime/comm/": BASE,
    "runtime/host/": PLAN + ["runtime/", "dnnl.h"],
    "tools/common/": BASE,
    "tools/flags/": GRAPH + PLAN + ["passes/"],
    "tools/compile/": GRAPH + PLAN + ["frontend/", "passes/", "tools/common/", "tools/flags/"],
    "tools/opt/": GRAPH + PLAN + ["frontend/", "passes/", "tools/common/", "tools/flags/"],
    "tools/inspect/": PLAN + ["tools/common/"],
    "tools/train/": PLAN + ["runtime/", "tools/common/"],
    "tests/": [""],
}
# Slow to compile, or no style of ours.
BANNED = ["regex", "iostream", "functional"]
MAX_LINES = 400
SOURCES = (".h", ".cpp", ".def", ".proto", ".py", ".sh", ".cmake", ".cu", ".cuh", ".js", ".css", ".html")
CPP = (".h", ".cpp", ".def", ".cu", ".cuh")
SKIPPED = {".git", "build", "__pycache__"}


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED)
        for name in sorted(names):
            if name.endswith(SOURCES) or name == "CMakeLists.txt":
                yield os.path.relpath(os.path.join(folder, name), root)


def layer(path):
    fits = [folder for folder in LAYERS if path.startswith(folder)]
    return max(fits, key=len) if fits else None


def checkInclude(root, path, quoted, target):
    """What is wrong with one #include line, or None."""
    if target.startswith("llvm/"):
        return None
    if not quoted and target != "dnnl.h" and not target.startswith("onnx/"):
        return f"banned include <{target}>" if target in BANNED else None
    home = layer(path)
    if home is None:
        return "this folder has no layer: add it to tests/lint/layers.py"
    if not any(target.startswith(lower) for lower in LAYERS[home] + [home]):
        return f'{home} must not include "{target}": got an arrow upwards, wanted one of {" ".join(LAYERS[home])}'
    if target.startswith(("gtest/", "gmock/")) and home == "tests/":
        return None
    if "/" in target and not target.endswith((".pb.h", ".inc")) and not os.path.exists(os.path.join(root, target)):
        return f'no such file from the root of the project: "{target}"'
    return None


def checkKernels(path, text):
    """What is launched early waits for its stream first (runtime/cuda/EarlyLaunch.h)."""
    for kernel in re.finditer(r"__global__[^{;]*\{\s*([^;}]*[;}])", text):
        if kernel[1] not in ("awaitStream();", "}"):
            number = text.count("\n", 0, kernel.start()) + 1
            yield f"{path}:{number}: a kernel that does not wait for its stream: got {kernel[1]!r} first, wanted awaitStream();"
    for launch in re.finditer("<<<", text):
        number = text.count("\n", 0, launch.start()) + 1
        yield f"{path}:{number}: a launch with <<<: wanted enqueue (runtime/cuda/Enqueue.cuh)"


def check(root):
    mistakes = []
    for path in files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read().split("\n")
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
            mistakes.append(f"{path}:1: no line SPDX-License-Identifier: Apache-2.0")
        if len(lines) - 1 > MAX_LINES:
            mistakes.append(f"{path}:{MAX_LINES}: file too long: got {len(lines) - 1} lines, wanted at most {MAX_LINES}")
        if path.endswith(".h") and "#pragma once" not in lines:
            mistakes.append(f"{path}:1: header without #pragma once")
        if path.endswith((".cu", ".cuh")):
            mistakes += checkKernels(path, "\n".join(lines))
        for number, line in enumerate(lines, 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line) and path != "tests/lint/layers.py":
                mistakes.append(f"{path}:{number}: unfinished work: file an issue instead")
            include = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if include and path.endswith(CPP):
                wrong = checkInclude(root, path, include[1] == '"', include[2])
                if wrong:
                    mistakes.append(f"{path}:{number}: {wrong}")
    return mistakes


if __name__ == "__main__":
    found = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(found) if found else "layers: all in order")
    sys.exit(1 if found else 0)
