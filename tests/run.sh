#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the preset `dev` and runs all tests. With --all also the long ones, and everything under the sanitizers.
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

# build PRESET
build() {
  cmake --preset "$1" --log-level=WARNING
  cmake --build --preset "$1"
}
# run PRESET [ctest options]
run() {
  ctest --test-dir "build/$1" -j2 --output-on-failure "${@:2}"
}

build dev
run dev -LE long
if $all; then
  run dev -L long
  build asan
  build tsan
  export UBSAN_OPTIONS=print_stacktrace=1
  run asan -LE 'long|lint'
  run tsan -LE 'long|lint'
fi
