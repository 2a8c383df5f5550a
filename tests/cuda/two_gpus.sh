#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What only two GPUs of one host can show, checked and timed, and one table of what came out.
#   bash tests/cuda/two_gpus.sh [--bench SHARED] [BIN]
# BIN: the folder of executables; build/cuda/bin. --bench: also whole steps beside PyTorch (tests/golden/bench_cuda.py --shared SHARED), and ours
# with NCCL told otherwise, to see what its settings are worth. Logs are in $OUT, or a new folder. PYTHON: with numpy and safetensors; for --bench
# with torch and transformers. Exit code 0 if nothing failed.
set -uo pipefail
cd "$(dirname "$0")/../.."

shared=""
if [[ "${1:-}" == --bench ]]; then
  shared=${2:?--bench wants a folder}
  shift 2
fi
bin=${1:-build/cuda/bin}
python=${PYTHON:-python3}
out=${OUT:-$(mktemp -d)}
rows=() failed=0

# row NAME COMMAND...: runs it with its own log; the last line of the log is the result that the table shows.
row() {
  local name=$1 start=$SECONDS code=0
  shift
  "$@" > "$out/$name.log" 2>&1 || code=$?
  local state=ok
  ((code == 0)) || { state="FAILED ($code)"; failed=1; }
  rows+=("$(printf '%-26s %-12s %5d s  %s' "$name" "$state" $((SECONDS - start)) "$(tail -n 1 "$out/$name.log" | cut -c 1-110)")")
  echo "${rows[-1]}" >&2
}

gpus=$(nvidia-smi -L 2> /dev/null | wc -l)
if ((gpus < 2)); then
  echo "two_gpus.sh: got $gpus GPUs, wanted 2" >&2
  exit 77
fi
{
  nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader
  nvidia-smi topo -m
} > "$out/devices.log" 2>&1
cat "$out/devices.log" >&2

# What is right first: two threads with a device each, processes, all stages, deaths.
row nccl-tests "$bin/shardc-cuda-tests" --gtest_filter='CudaNccl*:OneRank*' --gtest_brief=1
row nccl-ranks "$python" tests/cuda/nccl_ranks.py "$bin" tests/models/tiny-t5/ts17-loss.onnx tests/models/tiny-deberta/ts17-logits.onnx
row golden "$python" tests/golden/golden.py "$bin" tests/models/tiny-* --device cuda --processes --ranks 2 --zero 0,1,2,3 --accumulate 1,2 \
  --settings adamw,sgd-momentum

# The link, and what it costs beside products.
calibrate() { "$bin/shardc-train" --calibrate "$out/$1.json" --ranks 2 && tr -d '\n' < "$out/$1.json"; }
row calibrate calibrate machine
row calibrate-without-windows env NCCL_WIN_ENABLE=0 NCCL_LOCAL_REGISTER=0 bash -c "$(declare -f calibrate); bin='$bin' out='$out'; calibrate unregistered"
row calibrate-kernels env NCCL_CTA_POLICY=0 bash -c "$(declare -f calibrate); bin='$bin' out='$out'; calibrate kernels"

if [[ -n $shared ]]; then
  works=t5-large-64,deberta-v2-xlarge-40
  bench() { "$python" tests/golden/bench_cuda.py "$bin" --shared "$shared" --gpus 2 --works "$works" "$@" | tee /dev/stderr | tail -n 2 | paste -sd ' '; }
  for zero in 3 1 0; do
    modes=(--modes none)
    ((zero == 3)) && modes=(--trace "$out")
    row "bench-zero-$zero" bench --compile-flags "--zero $zero" "${modes[@]}"
  done
  row bench-own-machine bench --modes none --compile-flags "--machine $out/machine.json"
  # Gathers by kernels; fewer and more multiprocessors for reductions. 4 would leave 128 to products, which have 128 blocks or multiples of it.
  for setting in NCCL_WIN_ENABLE=0 NCCL_CTA_POLICY=0 NCCL_MAX_CTAS=2 NCCL_MAX_CTAS=4 NCCL_MAX_CTAS=8 NCCL_MIN_CTAS=32 NCCL_GRAPH_MIXING_SUPPORT=0; do
    export "${setting?}"
    row "bench-$setting" bench --modes none
    unset "${setting%%=*}"
  done
fi

echo
cat "$out/devices.log"
printf '%s\n' "${rows[@]}"
echo "logs: $out"
exit $failed
