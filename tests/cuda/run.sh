#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All that needs a CUDA device, from a build folder: tests (a line for each suite), then times of kernels. usage: tests/cuda/run.sh build/cuda
cd "$(dirname "$0")/../.." || exit 2
bin="${1:?the build folder}/bin"
report=$(mktemp)
"$bin/shardc-cuda-tests" --gtest_brief=1 > "$report" 2>&1
status=$?
grep -v '^\[  SKIPPED \]' "$report" | tail -n 60
echo
"$bin/shardc-cuda-times" || [ $? -eq 77 ] || status=1
rm -f "$report"
exit $status
