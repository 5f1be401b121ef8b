#!/bin/bash
# The library of docs/op_library.md: built outside the tree with plain g++, seen
# by every verb, trained on two ranks with the numbers of built-in ops.
set -eu
. tests/op_library/library.sh

page >primer.cc
build primer -Wall -Wextra -Werror
lib=./libprimer.so

# The same net with the op and with what it stands for.
sed 's/type: "relu"/type: "squared_relu"/' "$root/models/mlp.pbtxt" >own.pbtxt
grep -q squared_relu own.pbtxt
sed 's|^op { type: "relu".*|op { type: "relu" in { slot: "X" var: "fc1" } out { slot: "Out" var: "r" } }\
op { type: "elementwise_mul" in { slot: "X" var: "r" } in { slot: "Y" var: "r" } out { slot: "Out" var: "relu1" } }|' \
  "$root/models/mlp.pbtxt" >plain.pbtxt
grep -q elementwise_mul plain.pbtxt
cat >fp32.pbtxt <<'END'
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.01 base_batch: 64 constant: true }
train { batch_size: 64 epochs: 2 seed: 1 }
END

compile() { # NAME [flags]
  local net=$1
  shift
  "$halftone" compile "$net.pbtxt" --strategy fp32.pbtxt --target cpu "$@"
}
compile own --op-library $lib -o own.htc >compiled.txt
compile plain -o plain.htc >>compiled.txt
train() { # NAME [flags]
  local net=$1
  shift
  "$halftone" launch --ranks 2 run "$net.htc" --data "$data" --out "runs/$net" \
    "$@" >"$net.txt" 2>&1 || {
    cat "$net.txt"
    fail "$net does not train"
  }
}
train own --op-library $lib
train plain
# Bit for bit: scale 1 and factors of 2 are exact.
losses() {
  python3 - "$1" <<'END'
import json, sys
for event in map(json.loads, open(sys.argv[1])):
  if event.get('event') == 'step':
    print(event['step'], repr(event['loss']), repr(event['grad_norm']))
END
}
losses runs/own/metrics.jsonl >own.losses
losses runs/plain/metrics.jsonl >plain.losses
[ "$(wc -l <own.losses)" -gt 4 ] || fail "no losses"
diff own.losses plain.losses || fail "other numbers than with built-in ops"

# What needs the library says so, and what has it works.
needs='--op-library ./libprimer.so'
for verb in "inspect own.htc" "plan own.htc" "explain own.htc relu1" \
  "run own.htc --data synthetic" "compile own.htc" "opt own.htc --passes all" \
  "eval runs/own --data $data" "predict runs/own --data $data" \
  "export runs/own -o own.safetensors" "diff own.htc own.htc" \
  "tune own.htc -o tuned.json"; do
  # shellcheck disable=SC2086
  refused 9 "$needs" "$halftone" $verb
  # shellcheck disable=SC2086
  case $verb in run* | tune*) continue ;; esac
  # shellcheck disable=SC2086
  "$halftone" $verb --op-library $lib >verb.txt 2>&1 || {
    cat verb.txt
    fail "$verb"
  }
done
refused 1 'unknown op squared_relu' "$halftone" compile own.pbtxt
"$halftone" ops squared_relu --op-library $lib >ops.txt
grep -q '^from the op library primer 1.0, ./libprimer.so, [0-9a-f]\{16\}$' ops.txt
grep -q 'squared_relu(bf16)@channels_last' ops.txt
"$halftone" ops --op-library $lib | grep -q '^squared_relu  *gray  *f32 f16 bf16'
# Programs in text form, and launch's own flag.
"$halftone" inspect own.htc --dump --op-library $lib >own.ht
grep -q 'squared_relu_grad(' own.ht
"$halftone" opt own.ht --passes clean-up --op-library $lib >again.ht
"$halftone" launch --ranks 2 --op-library $lib run own.htc --data synthetic \
  --epochs 1 >flag.txt 2>&1 || { cat flag.txt; fail "launch --op-library"; }
refused 2 '--op-library' "$halftone" launch --ranks 2 --op-library $lib true

# Classes and lists hold for it, f16 and bf16 train.
for dtype in fp16 bf16; do
  compile own --op-library $lib --level O1 --dtype $dtype -o low.htc >low.txt
  "$halftone" inspect low.htc --op-library $lib |
    grep -q '^relu1  *squared_relu  *b*f16  *GRAY_ALL_LOW <- fc1'
  "$halftone" run low.htc --op-library $lib --data "$data" --out "runs/$dtype" \
    >run.txt 2>&1 || { cat run.txt; fail "$dtype does not train"; }
  losses "runs/$dtype/metrics.jsonl" | python3 -c '
import sys
losses = [float(line.split()[1]) for line in sys.stdin]
assert losses[-1] < 0.7 * losses[0], losses'
done
compile own --op-library $lib --level O1 --black squared_relu -o black.htc >b.txt
"$halftone" inspect black.htc --op-library $lib |
  grep -q '^relu1  *squared_relu  *f32  *USER_BLACK'

# Ranks with other files of it do not start together.
sed 's|// Out = |// The same: Out = |; s/scale \* (2 \* x)/(2 * x) * scale/' primer.cc >other.cc
build other
# A run that goes on with another file says so.
resumed() { # LIBRARY EPOCHS TEXT
  train own --op-library "$1" --epochs "$2" --resume
  grep -q "^resume .*; $3\$" own.txt || {
    cat own.txt
    fail "expected \"$3\""
  }
}
resumed $lib 3 'same program and 2 ranks: bit for bit'
resumed ./libother.so 4 '2 ranks; another op library primer'
cat >rank.sh <<'END'
#!/bin/bash
library=$1
[ "$RANK" = 0 ] || library=./libother.so
shift
exec "$@" --op-library "$library"
END
chmod +x rank.sh
refused 7 '--op-library:primer' "$halftone" launch --ranks 2 -- ./rank.sh $lib \
  "$halftone" run own.htc --data "$data"

# Lists, temporaries, a workspace: wide.cc, against built-in ops.
cp "$root/tests/op_library/wide.cc" .
build wide -Wall -Wextra -Werror
two='op { type: "relu" in { slot: "X" var: "fc1" } out { slot: "Out" var: "r" } }\
op { type: "tanh" in { slot: "X" var: "fc1" } out { slot: "Out" var: "t" } }\
'
out='out { slot: "Out" var: "relu1" } }'
sed "s|^op { type: \"relu\".*|${two}op { type: \"add_list\" in { slot: \"X\" var: \"r\" var: \"t\" } $out|" \
  "$root/models/mlp.pbtxt" >wide.pbtxt
sed "s|^op { type: \"relu\".*|${two}op { type: \"elementwise_add\" in { slot: \"X\" var: \"r\" } in { slot: \"Y\" var: \"t\" } $out|" \
  "$root/models/mlp.pbtxt" >sum.pbtxt
for net in wide sum; do
  "$halftone" run $net.pbtxt --strategy fp32.pbtxt --target cpu --data "$data" \
    --op-library ./libwide.so --out runs/$net >$net.txt 2>&1 || {
    cat $net.txt
    fail $net
  }
  losses runs/$net/metrics.jsonl >$net.losses
done
diff wide.losses sum.losses || fail 'other numbers than with built-in ops'

# Where nvcc is, the same file has kernels for GPUs; the compiler takes them.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ]; then
  "$nvcc" -std=c++17 -O2 -shared -Xcompiler -fPIC -x cu -I include primer.cc \
    -o libgpu.so
  "$halftone" ops squared_relu --op-library ./libgpu.so >gpu.txt
  grep -q 'squared_relu(f16)@row_major' gpu.txt
fi
