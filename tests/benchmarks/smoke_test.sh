#!/bin/bash
# Runs every benchmark once, on its smallest case: only that it runs counts.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for benchmark in tests/benchmarks/*_benchmark; do
  smallest=.
  case $benchmark in
    */passes_benchmark) smallest='/10000$' ;;
    */collective_benchmark) smallest='/16/.*/2' ;;
    */linear_benchmark) smallest=$("$benchmark" --benchmark_list_tests | head -n 1) ;;
  esac
  "$benchmark" --benchmark_filter="$smallest" --benchmark_min_time=0.001
done
