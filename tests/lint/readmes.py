#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readmes.py ROOT: checks that what the READMEs name is there, and that what is there is named.

- A name in the first column of a table is a file of the README's folder (with or without its ending, `*` for several, or `...Part`
  for the end of a name), or a folder below it.
- Where such a table lists files, each source file of the folder is listed: by a name in backticks anywhere in the README, or in a
  .def file that the README names.
- Links, and paths in backticks that begin with a folder of the project, lead somewhere.
- A --flag is one of a tool, a script or a program that is run (KNOWN).

Prints `FILE:LINE: what is wrong` and exits 1 if anything is.
"""
import fnmatch
import os
import re
import sys

SKIPPED = {".git", "build", "__pycache__"}
SOURCES = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".js", ".cmake", ".proto")
FOLDERS = ("frontend/", "ir/", "passes/", "runtime/", "tests/", "tools/")
# Flags of CMake, ctest, torchrun and others that commands in READMEs use.
KNOWN = {"help", "preset", "build", "target", "test-dir", "output-on-failure", "no-python", "nproc-per-node", "gtest_filter"}


def stem(name):
    return name.rsplit(".", 1)[0]


def plain(name):
    return re.sub("[^a-z0-9]", "", name.lower())


def walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED)
        yield os.path.relpath(folder, root), folders, sorted(names)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def flags(root):
    """Every flag that a tool defines, or a script reads: what stands in quotes there, or behind `--`."""
    found = set(KNOWN)
    for folder, _, names in walk(root):
        for name in names:
            if name.endswith((".py", ".sh")) or (folder.startswith("tools") and name.endswith((".cpp", ".h"))):
                text = read(os.path.join(root, folder, name))
                found.update(re.findall(r'"-{0,2}([a-z][a-z0-9_-]*)"', text) + re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)\) ", text))
    return found


def covers(pattern, name):
    """Does a name as READMEs write it mean this file?"""
    if pattern.startswith("..."):
        return stem(name).endswith(pattern[3:])
    return any(fnmatch.fnmatchcase(n, pattern) for n in (name, stem(name), stem(name) + ".h"))


def paths(root):
    """Files with and without their endings, and folders."""
    found = set()
    for folder, folders, names in walk(root):
        for name in folders + names:
            path = os.path.normpath(f"{folder}/{name}")
            found.update((path, stem(path)))
    return found


def check(root):
    mistakes, known, everything = [], flags(root), paths(root)
    for folder, folders, names in walk(root):
        if "README.md" not in names:
            continue
        where, text = os.path.normpath(f"{folder}/README.md"), read(os.path.join(root, folder, "README.md"))
        lines, below, tableOfFiles = text.split("\n"), [f + "/" for f in folders], False
        deeper = [n for f in folders if not os.path.exists(os.path.join(root, folder, f, "README.md"))
                  for n in os.listdir(os.path.join(root, folder, f))]
        for number, line in enumerate(lines, 1):
            if line.startswith("|") and line.count("|") > 2:
                for name in re.findall(r"`([^` ]+)`", line.split("|")[1]):
                    if re.fullmatch(r"[A-Z.][\w.*]*[a-z*][\w.*]*|[a-z_]+\.(py|sh|js|proto|txt)", name):
                        tableOfFiles = True
                        if not any(covers(name, n) for n in names + deeper):
                            mistakes.append(f"{where}:{number}: no such file: {name}")
                    elif name.endswith("/") and name not in below:
                        mistakes.append(f"{where}:{number}: no such folder: {name}")
            for target in re.findall(r"\]\(([^)#:]+)\)", line):
                if not os.path.exists(os.path.join(root, folder, target)):
                    mistakes.append(f"{where}:{number}: the link leads nowhere: {target}")
            for path in re.findall(r"(?<![\w/.$])((?:[\w.-]+/)+[\w.*-]*\w)", line):
                if path.startswith(FOLDERS) and not any(fnmatch.fnmatch(p, path) for p in everything):
                    mistakes.append(f"{where}:{number}: no such path: {path}")
            for flag in re.findall(r"(?<![\w-])--([a-z][a-z0-9_-]*\w)(?![\w-])", line):
                if flag not in known:
                    mistakes.append(f"{where}:{number}: no tool or script has this flag: --{flag}")
        if tableOfFiles:
            named = re.findall(r"`([^` ]+)`", text)
            listed = {plain(word) for d in named if d.endswith(".def") and d in names
                      for word in re.findall(r"[\w-]+", read(os.path.join(root, folder, d)))}
            mistakes += [f"{where}:1: does not name {n}" for n in names
                         if n.endswith(SOURCES) and n != "main.cpp" and not any(covers(p, n) for p in named) and plain(stem(n)) not in listed]
    return mistakes


if __name__ == "__main__":
    found = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(found) if found else "READMEs: all in order")
    sys.exit(1 if found else 0)
