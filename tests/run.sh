#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the preset `dev` and runs all tests. With --all also the long ones, and everything under the sanitizers.
# Where CUDA's compiler is, the CUDA runtime is built too (preset `check-cuda`), and what it generates is compiled; no GPU is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

all=false
case "${1:-}" in
  "") ;;
  --all) all=true ;;
  *) echo "usage: bash tests/run.sh [--all]" >&2; exit 1 ;;
esac

bash tools/setup.sh
export OMP_WAIT_POLICY=passive # several tests run at once: a waiting thread should not hold a core

# build PRESET [options of cmake --build]
build() {
  cmake --preset "$1" --log-level=WARNING
  cmake --build --preset "$1" "${@:2}"
}
# run PRESET [ctest options]
run() {
  ctest --test-dir "build/$1" -j2 --output-on-failure "${@:2}"
}

# The toolkit's compiler, where CMake finds it.
hasNvcc() {
  command -v nvcc > /dev/null || [ -x "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" ]
}

build dev
run dev -LE long
if hasNvcc; then
  build check-cuda --target shardc-train --target shardc-cuda-tests --target shardc-cuda-times
  build/check-cuda/bin/shardc-cuda-tests --gtest_brief=1 # without a device: those that only compile
fi
if $all; then
  run dev -L long
  build asan
  build tsan
  export UBSAN_OPTIONS=print_stacktrace=1
  run asan -LE 'long|lint'
  run tsan -LE 'long|lint'
fi
