# SPDX-License-Identifier: Apache-2.0
"""Writes the files beside it with NumPy and safetensors: what our readers must understand. Needs both from PyPI."""
import os
import numpy as np
from safetensors.numpy import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))
arrays = {
    "input_ids": np.arange(12, dtype=np.int64).reshape(4, 3),
    "labels": np.array([[1, -100], [0, 2], [3, 3], [-100, 1]], np.int32),
    "weight": np.array([0.5, -1.25, 3e-5, 65504], np.float16),
    "x": np.array([[[1.5], [2.25]], [[-3.0], [1e30]]], np.float32),
    "scalar": np.array(2.5, np.float64),
    "empty": np.zeros((0, 3), np.float32),
    "mask": np.array([True, False, True]),
    "bytes": np.array([7, 255], np.uint8),
}
save_file(arrays, "arrays.safetensors", metadata={"format": "np"})
# What numpy can write and Shardc has no use for.
odd = {"big_endian": np.arange(3, dtype=">f4"), "columns": np.asfortranarray(np.ones((2, 3), np.float32)),
       "int8": np.zeros(5, np.int8), "pair": np.zeros(2, [("a", "<f4"), ("b[", "<i8", (2,))]),
       "text": np.array(["a", "bc"])}
np.savez("stored.npz", **arrays, **odd)
np.savez_compressed("deflated.npz", **arrays)
