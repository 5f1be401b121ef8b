#!/bin/bash
# `run` over a tree of stand-ins: what passes, fails, is skipped, crashes, hangs
# and cannot be started is told apart, counted and never stops the rest.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp "$here/run" "$here/table.sh" "$tree"
mkdir -p "$tree/tests/ops" "$tree/tests/benchmarks" "$tree/tools"

# program PATH: from stdin, and a packed target.
program() {
  cat >"$tree/$1"
  chmod +x "$tree/$1"
  echo "$1" >>"$tree/targets"
}

case_line() { printf 'printf "%s Suite.%s (3 ms)\\n"\n' "$1" "$2"; }
ok='[       OK ]' failed='[  FAILED  ]' skipped='[  SKIPPED ]'
ran='echo "[==========] 3 tests from 1 test suite ran. (9 ms total)"'

{ echo '#!/bin/sh'; case_line "$ok" A; case_line "$ok" B; case_line "$skipped" C; echo "$ran"; } |
  program tests/ops/good_test
{ echo '#!/bin/sh'; case_line "$ok" A; case_line "$failed" B; case_line "$failed" C; echo "$ran"; echo 'exit 1'; } |
  program tests/ops/bad_test
{ echo '#!/bin/sh'; case_line "$ok" A; echo 'kill -SEGV $$'; } |
  program tests/crash_test
{ echo '#!/bin/sh'; case_line "$ok" A; echo 'exec sleep 60'; } |
  program tests/hang_test
{ echo '#!/bin/sh'; echo "$ran"; } | program tests/empty_test
echo 'not a program' >"$tree/tests/broken_test"
echo tests/broken_test >>"$tree/targets"
{ echo '#!/bin/sh'; echo 'echo warming up'; echo 'echo "{\"samples_per_second\":7200.5,\"step_ms\":35.55}"'; } |
  program tests/benchmarks/train_benchmark
cat >"$tree/tools/halftone" <<'END'
#!/bin/sh
case "$1 $*" in
  compile*mnist_o2.pbtxt*) echo "error    conv2d: no kernel"; exit 1 ;;
  run*o1_bf16*) echo "done     1 epochs; top1 94.9 % (341/359)" ;;
  run*fp32.htc*) echo "error    device lost"; exit 9 ;;
  run* | launch*) echo "done     1 epochs; top1 97.5 % (350/359), best at epoch 5" ;;
esac
END
chmod +x "$tree/tools/halftone"
sort -o "$tree/targets" "$tree/targets"

failures=0
# expect WHAT TEXT PATTERN...: each pattern is a whole line of the text.
expect() {
  local what=$1 text=$2 pattern
  shift 2
  for pattern; do
    grep -qxE "$pattern" <<<"$text" && continue
    printf '%s: no line is "%s" in\n%s\n' "$what" "$pattern" "$text"
    failures=$((failures + 1))
  done
}
expect_code() {
  [ "$2" = "$3" ] && return
  echo "$1: exit code $2, not $3"
  failures=$((failures + 1))
}

n='[0-9.]+'
table=$("$tree/run" --gpus 1 --limit 2 --logs "$tree/logs" 2>"$tree/err")
expect_code 'one GPU' $? 1
expect 'one GPU' "$table" \
  'name +passed  failed  skipped  seconds' \
  "bad_test +1 +2 +0 +$n  exit 1" \
  "good_test +2 +0 +1 +$n" \
  "crash_test +1 +1 +0 +$n  signal 11" \
  "hang_test +1 +1 +0 +$n  time limit" \
  "empty_test +0 +1 +0 +$n  no test ran" \
  "broken_test +0 +1 +0 +$n  cannot be started" \
  "digits o1 +1 +0 +0 +$n  top1 97.5 %" \
  "digits o1_bf16 +0 +1 +0 +$n  top1 94.9 %, wanted 95" \
  "digits o2 +0 +1 +0 +$n  does not compile" \
  "digits fp32 +0 +1 +0 +$n  error    device lost" \
  "resnet50 O1 +1 +0 +0 +$n  7200.5 samples/s, 35.55 ms a step" \
  'resnet50 beside PyTorch +0 .*'
order=$(cut -d' ' -f1 <<<"$table" | uniq | paste -sd' ')
expect order "$order" 'name bad_test good_test .* digits .* resnet50'

table=$("$tree/run" --gpus 2 --logs "$tree/logs" --only 'digits o1 *' digits 2>/dev/null)
expect_code 'two GPUs' $? 0
expect 'two GPUs' "$table" "digits o1 2 threads +1 .*" "digits o1 2 processes +1 .*"

# Counted by the driver's own tool; what it shows of a device is indented.
cat >"$tree/nvidia-smi" <<'END'
#!/bin/sh
echo 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)'
echo '  MIG 1g.10gb Device 0: (UUID: MIG-1)'
echo 'GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)'
END
chmod +x "$tree/nvidia-smi"
table=$(PATH=$tree:$PATH "$tree/run" --logs "$tree/logs" --only 'digits o1 2*' digits 2>/dev/null)
expect_code 'two GPUs are found' $? 0
expect 'two GPUs are found' "$table" "digits o1 2 processes +1 .*"

table=$("$tree/run" --gpus 0 --logs "$tree/logs" 2>"$tree/err")
expect_code 'no GPU' $? 9
expect 'no GPU' "$(cat "$tree/err")" 'run      no GPU here: everything is skipped'
expect 'no GPU' "$table" 'good_test +0 +0 +1 +0  no GPU' 'resnet50 O1 +0 +0 +1 +0  no GPU'
expect 'no GPU' "$(grep -c 'no GPU$' <<<"$table")/$(wc -l <<<"$table")" '29/30'

"$tree/run" --logs "$tree/logs" --gpus 1 --only nothing >/dev/null 2>&1
expect_code 'nothing matches' $? 2
"$tree/run" --gpu 1 >/dev/null 2>&1
expect_code 'no such option' $? 2
exit $failures
