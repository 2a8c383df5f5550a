#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job, from nothing: builds Shardc, compiles a bundled T5 to training plans for 4 ranks, and trains it on this machine's
# CPU, the ranks as threads, to write short sequences backwards. Takes a model.onnx, leaves trained weights. Everything goes to build/demo.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

step() { printf '\n\033[1m== %s\033[0m\n' "$1" >&2; }
show() { # prints a command as a user would type it, then runs it
  printf '$ %s\n' "$*" >&2
  "$@"
}

step "Build"
bash tools/setup.sh --build
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target shardc shardc-inspect shardc-train
export PATH="$PWD/build/release/bin:$PATH"

MODELS=tests/models
OUT=build/demo
mkdir -p "$OUT"

step "Compile: a T5 with its loss, as exported by PyTorch, becomes plans for 4 ranks, one for each ZeRO stage"
for stage in 0 1 2 3; do
  show shardc $MODELS/reverse-t5.onnx --ranks 4 --zero $stage --dim batch=8,src=9,tgt=9 -o $OUT/stage$stage.plan >/dev/null
done

step "Inspect: what a rank needs memory for, and what it sends, at each stage"
show shardc-inspect $OUT/stage[0-3].plan

step "Train: 1000 steps of 4 ranks at stage 3 on 3200 short sequences, the target is the sequence backwards"
show shardc-train $OUT/stage3.plan --data $MODELS/reverse-train.safetensors \
  --eval-data $MODELS/reverse-eval.safetensors --max-steps 1000 \
  --learning-rate 3e-3 --lr-scheduler-type linear --warmup-steps 100 --max-grad-norm 1.0 \
  --output-dir $OUT/run --save-weights $OUT/reverse.safetensors

step "Done"
accuracy=$(sed -E 's/.*"eval_accuracy": ([0-9.]+).*/\1/' $OUT/run/train_results.json)
echo "Of the tokens of 512 sequences that it has not seen, the model now writes $(printf '%.1f' "${accuracy}e2") % right."
echo "Plan: $OUT/stage3.plan   weights: $OUT/reverse.safetensors   log: $OUT/run/log.jsonl"
