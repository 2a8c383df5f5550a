# SPDX-License-Identifier: Apache-2.0
"""What tests that run models by the tools share: where things are, and the packages or exit code 77. Takes BIN from the command line."""
import os
import sys

try:
    import numpy as np  # noqa: F401
    from safetensors.numpy import load_file, save_file  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}; tools/setup.sh makes an environment that has it")
    sys.exit(77)

BIN = os.path.abspath(sys.argv.pop(1))
MODELS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "models")
LOGITS = ["--loss", "cross_entropy", "--logits", "logits", "--labels", "labels"]
