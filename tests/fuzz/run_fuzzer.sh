#!/bin/bash
# libFuzzer over all targets, or those named, for so many seconds each. What it
# learns stays in FOLDER/TARGET, and what breaks a target in FOLDER/found.
#
#   bazel build --config=fuzzer //tests/fuzz:fuzzer
#   tests/fuzz/run_fuzzer.sh SECONDS FOLDER [TARGET...]
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
fuzzer=${FUZZER:-bazel-bin/tests/fuzz/fuzzer}
if [ $# -lt 2 ]; then
  sed -n '2,6s/^# \?//p' "$0" >&2
  exit 2
fi
seconds=$1 folder=$2
shift 2
# Without a target it names them all.
[ $# -gt 0 ] || set -- $("$fuzzer" 2>&1 | sed -n 's/.*expected one of//p')
[ $# -gt 0 ] || { echo "$fuzzer names no target: is it built?" >&2; exit 2; }
mkdir -p "$folder/found"
# Freed memory that the sanitizer keeps would count as ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:quarantine_size_mb=8}
export TEST_TMPDIR=$(mktemp -d)
trap 'rm -r "$TEST_TMPDIR"' EXIT
broken=0
for target in "$@"; do
  mkdir -p "$folder/$target"
  log=$folder/$target.log
  if HT_FUZZ_TARGET=$target HT_FUZZ_SEEDS=$folder/$target "$fuzzer" \
    "$folder/$target" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=256 -print_final_stats=1 \
    -artifact_prefix="$folder/found/$target-" >"$log" 2>&1; then
    end=sound
  else
    end=BROKEN broken=1
  fi
  runs=$(sed -n 's/stat::number_of_executed_units: *//p' "$log")
  rate=$(sed -n 's/stat::average_exec_per_sec: *//p' "$log")
  peak=$(sed -n 's/stat::peak_rss_mb: *//p' "$log")
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
  printf '%-15s %s  %s runs, %s a second, %s, %s MiB at most\n' \
    "$target" "$end" "${runs:-?}" "${rate:-?}" "${edges:-no coverage}" "${peak:-?}"
done
exit $broken
