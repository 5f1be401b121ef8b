#!/bin/bash
# docs/builder.md as its reader has it: installed, the page's program compiled
# outside the tree with plain g++, run, and the run's loss read.
set -eu
root=$PWD
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
tools/install --built "$root" "$work/prefix"
cd "$work"
sed -n '/^```cpp$/,/^```$/p' "$root/docs/builder.md" | sed '1d;$d' >two_layers.cc
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
# As the library was built.
sanitizer=${ASAN_OPTIONS:+-fsanitize=address}${TSAN_OPTIONS:+-fsanitize=thread}
# shellcheck disable=SC2046,SC2086
g++ $sanitizer two_layers.cc $(pkg-config --cflags --libs halftone) -o two_layers
./two_layers "idx:$root/models/digits" >out.txt
grep -q '^precision ' out.txt
python3 - <<'END'
import json
losses = [e['loss'] for e in map(json.loads, open('runs/two_layers/metrics.jsonl'))
          if e.get('event') == 'step']
assert len(losses) > 2 and losses[-1] < 0.7 * losses[0], losses
END
"$work/prefix/bin/halftone" eval runs/two_layers --data "idx:$root/models/digits" |
  grep -q top1
# What the builder does not check, a command does, with its documented code.
cat >wrong.cc <<'END'
#include "tools/command.h"
int main() { return halftone::RunCommand({"compile", "nowhere.pbtxt"}); }
END
# shellcheck disable=SC2046,SC2086
g++ $sanitizer wrong.cc $(pkg-config --cflags --libs halftone) -o wrong
code=0
./wrong 2>error.txt || code=$?
[ $code = 1 ] && grep -q 'nowhere.pbtxt' error.txt
# What one command could not show is not the next one's error.
cat >again.cc <<'END'
#include <fcntl.h>
#include <unistd.h>

#include "tools/command.h"
int main() {
  const int kept = dup(1);
  dup2(open("/dev/full", O_WRONLY), 1);
  const int lost = halftone::RunCommand({"version"});
  dup2(kept, 1);
  return lost == 1 ? halftone::RunCommand({"version"}) : 2;
}
END
# shellcheck disable=SC2046,SC2086
g++ $sanitizer again.cc $(pkg-config --cflags --libs halftone) -o again
./again >out.txt
grep -q '^halftone ' out.txt
