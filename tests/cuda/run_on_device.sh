#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a CUDA device, and one table of what came out.
#   bash tests/cuda/run_on_device.sh [--quick] [--sanitize] [BIN [MODELFOLDER...]]
# BIN: the folder of executables; build/cuda/bin. MODELFOLDERs beside those of tests/models: as tests/golden/golden.py takes them.
# --quick: kernels and one golden of each folder. --sanitize: also compute-sanitizer's memcheck and racecheck, which take minutes.
# PYTHON names a Python with numpy and safetensors; LD_LIBRARY_PATH the toolkit's libraries, where they are not in /usr/local/cuda.
# Logs are in $OUT, or a new folder. Exit code 0 if nothing failed.
set -uo pipefail
cd "$(dirname "$0")/../.."

quick=false sanitize=false
while [[ "${1:-}" == --* ]]; do
  case "$1" in
    --quick) quick=true ;;
    --sanitize) sanitize=true ;;
    *) echo "usage: bash tests/cuda/run_on_device.sh [--quick] [--sanitize] [BIN [MODELFOLDER...]]" >&2; exit 1 ;;
  esac
  shift
done
bin=${1:-build/cuda/bin}
folders=(tests/models/tiny-* "${@:2}")
python=${PYTHON:-python3}
out=${OUT:-$(mktemp -d)}
rows=() failed=0

# row NAME COMMAND...: runs it with its own log; the last line of the log is the result that the table shows.
row() {
  local name=$1 start=$SECONDS code=0 result
  shift
  "$@" > "$out/$name.log" 2>&1 || code=$?
  result=$(tail -n 1 "$out/$name.log" | cut -c 1-90)
  case $code in
    0) state=ok ;;
    77) state=skipped ;;
    *) state="FAILED ($code)"; failed=1 ;;
  esac
  rows+=("$(printf '%-22s %-13s %5d s  %s' "$name" "$state" $((SECONDS - start)) "$result")")
  echo "${rows[-1]}" >&2
}

# tests FILTER: skipped (77) where no test could run.
tests() {
  local code=0 text
  text=$("$bin/shardc-cuda-tests" --gtest_filter="$1" --gtest_brief=1 2>&1) || code=$?
  echo "$text"
  number() { sed -nE "s/^\[ +$1 +\] ([0-9]+) tests?.*/\1/p" <<< "$text" | tail -n 1; }
  local passed=$(number PASSED) skipped=$(number SKIPPED) bad
  bad=$(grep -cE "^\[  FAILED  \] .* ms\)" <<< "$text")
  echo "passed ${passed:-0}, failed $bad, skipped ${skipped:-0}"
  [[ $code == 0 && ${passed:-0} == 0 ]] && return 77
  return $code
}

# sanitized TOOL: a few steps of a plan.
sanitized() {
  "$bin/shardc" "$2" -o "$out/$1.plan" --dim "$3" "${@:4}" &&
    compute-sanitizer --tool "$1" --error-exitcode 9 "$bin/shardc-train" "$out/$1.plan" --device cuda --no-cuda-graphs --tuning off \
      --data "$(dirname "$2")/data.safetensors" --max-steps 2
}

golden() { "$python" tests/golden/golden.py "$bin" "${folders[@]}" --device cuda "$@"; }

nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>&1 | tee "$out/device.log" >&2
gpus=$(nvidia-smi -L 2> /dev/null | wc -l)

row kernels tests 'Ops/*'
row communicators tests 'Each/*'
row executor tests '-Ops/*:Each/*'
if $quick; then
  row golden golden --only ts17 --settings adamw
  row golden-2-ranks golden --only ts17 --settings adamw --ranks 2 --zero 3
else
  row golden golden
  row golden-accumulate golden --settings adamw --accumulate 2
  row golden-2-ranks golden --settings adamw,sgd-momentum --ranks 2 --zero 0,1,2,3 --accumulate 1,2
  row golden-4-ranks golden --settings adamw-clip-linear --ranks 4 --zero 0,3
  row dropout "$python" tests/golden/dropout.py "$bin" "${folders[@]}" --device cuda
fi
row same-bits "$python" tests/cuda/same_bits.py "$bin" tests/models/tiny-t5/ts17-loss.onnx tests/models/tiny-deberta/ts17-logits.onnx
if ((gpus >= 2)); then
  row two-gpus bash tests/cuda/two_gpus.sh "$bin"
else
  row nccl-on-one-gpu "$python" tests/cuda/nccl_ranks.py "$bin" tests/models/tiny-t5/ts17-loss.onnx --one-gpu --zero 1,3 --accumulate 2
fi
row calibrate "$bin/shardc-train" --calibrate "$out/machine.json" --device cuda
if [[ -x $bin/shardc-cuda-times ]]; then
  row times "$bin/shardc-cuda-times"
fi
if $sanitize; then
  for tool in memcheck racecheck; do
    row "$tool-t5" sanitized $tool tests/models/tiny-t5/ts17-loss.onnx batch=2,src=12,tgt=8
    row "$tool-deberta" sanitized $tool tests/models/tiny-deberta/ts17-logits.onnx batch=2,src=12 --loss cross_entropy --logits logits --labels labels
  done
fi

echo
cat "$out/device.log"
printf '%s\n' "${rows[@]}"
echo "logs: $out"
exit $failed
