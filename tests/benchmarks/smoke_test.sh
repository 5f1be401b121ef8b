#!/bin/bash
# Runs every benchmark once, on its smallest case: only that it runs counts.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for benchmark in tests/benchmarks/*_benchmark; do
  smallest=.
  case $benchmark in
    */train_benchmark | */link_benchmark) continue ;;
    */passes_benchmark) smallest='/10000$' ;;
    */collective_benchmark) smallest='/16/.*/2' ;;
    */elementwise_benchmark | */recurrent_benchmark | */training_benchmark | */window_benchmark) smallest='/f32$' ;;
    */pool_benchmark) smallest='/f32' ;;
    */norm_benchmark) smallest='_7/f32$' ;;
    */attention_benchmark) smallest='_128/f32' ;;
    */data_benchmark) smallest=Jpegs ;;
    */linear_benchmark) smallest=$("$benchmark" --benchmark_list_tests | head -n 1) ;;
  esac
  "$benchmark" --benchmark_filter="$smallest" --benchmark_min_time=0.001
done

# Whole steps: one line of JSON whose figures fit together.
tests/benchmarks/train_benchmark --model mnist_convnet --batch 4 --steps 4 \
  --warmup 2 --scaling-cost | python3 -c '
import json, sys
line = json.load(sys.stdin)
assert line["samples_per_second"] * line["step_ms"] - 4000 < 1, line
assert line["loss"] > 0 and line["rejected"] == 0 and line["scale"] == 32768, line
assert "scaling_cost_percent" in line, line'

# A prediction and a measurement: only that there are both counts.
tests/benchmarks/compare_timeline.py --binary tools/halftone \
  --link-benchmark tests/benchmarks/link_benchmark --only mnist_convnet \
  --ranks 2 --rounds 1 --steps 4 | grep -E '^mnist_convnet +2 ranks .* ratio [0-9]'

# A column of the table, however little that says of one epoch.
tests/benchmarks/divergence_table.py --binary tools/halftone --epochs 1 \
  --rates 0.1 | grep -E '^O3 + [0-9.]+ %'

# The other side of the comparison says what it lacks, and is counted as lost.
if ! python3 -c 'import torch' 2>/dev/null; then
  code=0
  message=$(python3 tests/benchmarks/pytorch_benchmark.py 2>&1) || code=$?
  [ "$code $message" = "9 error    PyTorch is not here: pip install torch" ]
  code=0
  tests/benchmarks/compare_pytorch.py --model mnist_convnet --batch 4 \
    --steps 4 --warmup 2 --rounds 1 --cpu 2>/dev/null || code=$?
  [ $code = 9 ]
fi
