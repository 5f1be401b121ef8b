# How outputs of tests become rows, and rows a table. Sourced by `run`.
# shellcheck shell=bash

rows=()
failures=0

# add_row NAME PASSED FAILED SKIPPED SECONDS NOTE
add_row() {
  rows+=("$1|$2|$3|$4|$5|$6")
  failures=$((failures + $3))
}

# matches FILE PATTERN: how many lines of FILE match.
matches() { grep -c -a -E "$2" "$1" || true; }

# why_failed CODE: what an exit code says about how a program ended.
why_failed() {
  case $1 in
    124 | 137) echo "time limit" ;;
    126 | 127) echo "cannot be started" ;;
    1??) echo "signal $(($1 - 128))" ;;
    *) echo "exit $1" ;;
  esac
}

# add_gtest NAME LOG CODE SECONDS: a row of a GoogleTest program's output.
# What ends before its last case counts as one more failure.
add_gtest() {
  local passed failed skipped note=''
  passed=$(matches "$2" '^\[       OK \] .* \([0-9]+ ms\)$')
  failed=$(matches "$2" '^\[  FAILED  \] .* \([0-9]+ ms\)$')
  skipped=$(matches "$2" '^\[  SKIPPED \] .* \([0-9]+ ms\)$')
  if [ "$3" != 0 ]; then
    note=$(why_failed "$3")
    if [ "$(matches "$2" '^\[==========\] .* ran\.')" = 0 ] || [ "$failed" = 0 ]; then
      failed=$((failed + 1))
    fi
  elif [ $((passed + failed + skipped)) = 0 ]; then
    failed=1
    note='no test ran'
  fi
  add_row "$1" "$passed" "$failed" "$skipped" "$4" "$note"
}

print_table() {
  {
    echo 'name|passed|failed|skipped|seconds|'
    printf '%s\n' "${rows[@]}"
  } | awk -F'|' '
    { for (i = 1; i <= 6; ++i) {
        cell[NR, i] = $i
        if (length($i) > width[i]) width[i] = length($i)
      } }
    END { for (row = 1; row <= NR; ++row) {
        line = sprintf("%-" width[1] "s", cell[row, 1])
        for (i = 2; i <= 5; ++i) line = line sprintf("  %" width[i] "s", cell[row, i])
        line = line "  " cell[row, 6]
        sub(/ +$/, "", line)
        print line
      } }'
}
