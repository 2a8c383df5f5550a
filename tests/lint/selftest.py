#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py and readmes.py find each kind of mistake, and nothing in clean files."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layers
import readmes

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
CASES = [
    # path, content, what must be said (None: nothing)
    ("runtime/A.cpp", SPDX + '#include "ir/plan/P.h"\n#include "llvm/ADT/Twine.h"\n#include <vector>\n', None),
    ("ir/plan/P.h", SPDX + "#pragma once\n", None),
    ("ir/graph/Graph.h", SPDX + "#pragma once\n", None),
    ("runtime/B.cpp", SPDX + '#include "ir/graph/Graph.h"\n', 'runtime/ must not include "ir/graph/Graph.h"'),
    ("passes/C.cpp", SPDX + '#include "runtime/A.h"\n', 'passes/ must not include "runtime/A.h"'),
    ("passes/D.cpp", SPDX + '#include "onnx/onnx-ml.pb.h"\n', 'must not include "onnx/onnx-ml.pb.h"'),
    ("passes/E.cpp", SPDX + '#include "ir/graph/Gone.h"\n', "no such file from the root"),
    ("runtime/F.cpp", SPDX + "#include <dnnl.h>\n", 'must not include "dnnl.h"'),
    ("runtime/host/F.cpp", SPDX + "#include <dnnl.h>\n", None),
    ("frontend/G.cpp", SPDX + "#include <regex>\n", "banned include <regex>"),
    ("frontend/H.cpp", "int x;\n", "no line SPDX"),
    ("frontend/I.h", SPDX, "without #pragma once"),
    ("frontend/J.cpp", SPDX + "\n" * 400, "file too long: got 401 lines"),
    ("runtime/L.cu", SPDX + "__global__ void __launch_bounds__(32) f(int *x) {\n  awaitStream();\n  *x = 1;\n}\n__global__ void g() {}\n", None),
    ("runtime/M.cu", SPDX + "__global__ void f(int *x) {\n  *x = 1;\n  awaitStream();\n}\n", "runtime/M.cu:2: a kernel that does not wait for its stream: got '*x = 1;' first"),
    ("runtime/N.cu", SPDX + "void f() { g<<<1, 1>>>(); }\n", "a launch with <<<"),
    ("frontend/K.cpp", SPDX + "// TO" + "DO later\n", "unfinished work"),
]

# A project with one folder `ir`, which has A.h, A.cpp, BOne.cpp, BTwo.cpp, part/Main.js, and this README; what must be said.
TABLE = "| file | |\n|---|---|\n| `A.h`, `B*` | x |\n"
READMES = [
    (TABLE + "As `--rank` says, see [here](A.h) and ir/A.\n", None),
    ("No table, so nothing must be named.\n", None),
    (TABLE + "| `part/Main.js`, `part/` | x |\n", None),
    (TABLE.replace("`A.h`, ", ""), "ir/README.md:1: does not name A.h"),
    (TABLE + "| `Gone` | x |\n", "ir/README.md:4: no such file: Gone"),
    (TABLE + "| `gone/` | x |\n", "ir/README.md:4: no such folder: gone/"),
    (TABLE + "See [there](gone.md).\n", "ir/README.md:4: the link leads nowhere: gone.md"),
    (TABLE + "See `ir/Gone.h`.\n", "ir/README.md:4: no such path: ir/Gone.h"),
    (TABLE + "Say `--rankz 2`.\n", "ir/README.md:4: no tool or script has this flag: --rankz"),
]


def write(root, path, content):
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "w") as file:
        file.write(content)


with tempfile.TemporaryDirectory() as root:
    for path, content, _ in CASES:
        write(root, path, content)
    found = layers.check(root)
    for path, _, wanted in CASES:
        here = [line for line in found if line.startswith(path + ":")]
        assert len(here) == (1 if wanted else 0), (path, here)
        assert not wanted or wanted in here[0], (path, here)

with tempfile.TemporaryDirectory() as root:
    for name in "A.h", "A.cpp", "BOne.cpp", "BTwo.cpp", "part/Main.js":
        write(root, f"ir/{name}", "")
    write(root, "tools/Flags.cpp", 'cl::opt<int> ranks("rank");\n')
    for text, wanted in READMES:
        write(root, "ir/README.md", text)
        found = readmes.check(root)
        assert found[-1:] == ([wanted] if wanted else []), (text, found)
print(f"{len(CASES)} cases, {len(READMES)} READMEs")
