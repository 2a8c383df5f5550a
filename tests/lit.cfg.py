# SPDX-License-Identifier: Apache-2.0
# lit tests: files *.ir and *.test with RUN and CHECK lines. ctest runs them; by hand, for the dev build:
#   python3 /usr/lib/llvm-19/build/utils/lit/lit.py -v tests/passes
import os

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = lit_config.params.get("build", os.path.join(root, "build", "dev"))
llvm = lit_config.params.get("llvm", "/usr/lib/llvm-19/bin")
python = lit_config.params.get("python", os.path.join(root, "build", "venv", "bin", "python3"))

config.name = "shardc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ir", ".test"]
config.test_source_root = os.path.join(root, "tests")
config.test_exec_root = os.path.join(build, "tests", "lit")

# Our tools, and FileCheck, not, count.
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), llvm, os.environ["PATH"]])
for name in ["ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "OMP_NUM_THREADS", "OMP_WAIT_POLICY"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [
    ("%exits", "bash " + os.path.join(root, "tests", "exits.sh")),  # %exits 1 shardc ...: this exit code and no other
    ("%models", os.path.join(root, "tests", "models")),
    ("%python", python),
    ("%root", root),
]
