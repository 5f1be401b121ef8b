#!/bin/bash
# Writes the files of a release into a new folder: tests/formats/add_release.sh
# HALFTONE. Each is small; reads_test reads them from then on.
set -eu
halftone=$(realpath "$1")
version=$("$halftone" version --json | sed 's/.*"version":"halftone \([^"]*\)".*/\1/')
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
folder=$here/v$version
mkdir "$folder"
cd "$folder"

cat >model.pbtxt <<'MODEL'
name: "tiny"
format: 1
feed { name: "x" dtype: F32 dims: [-1, 4] }
feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [4, 3] init { kaiming_uniform { a: 2.236068 } } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
op { type: "correct_count" in { slot: "X" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Out" var: "correct" } }
loss { var: "loss" mean_over: "ce" }
metric { name: "top1" var: "correct" over: "label" }
output: "logits"
MODEL
cat >strategy.pbtxt <<'STRATEGY'
amp { level: "O1" dtype: "fp16" op_lists: "op_lists.pbtxt" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.01 cosine { min_ratio: 0.1 } }
train { batch_size: 16 epochs: 2 seed: 1 }
STRATEGY
cat >op_lists.pbtxt <<'LISTS'
op_lists { white: "matmul" black: "mean" clear: "correct_count" unlisted: "BLACK" }
LISTS
(cd "$top" && protoc --encode=halftone.proto.Model proto/program.proto) <model.pbtxt >model.pb
"$halftone" compile model.pbtxt --strategy strategy.pbtxt -o model.htc >log 2>&1
"$halftone" opt model.htc --passes precision -o model.ht >>log 2>&1
"$halftone" tune model.htc >>log 2>&1
"$halftone" run model.htc --data synthetic:64 --out run --checkpoint-every 4 >>log 2>&1
"$halftone" export run -o parameters.safetensors >>log 2>&1
# A loss scale at which f16 gradients overflow.
"$halftone" run model.pbtxt --strategy strategy.pbtxt --loss-scale 1e30 \
    --data synthetic:16 --out overflow --capsule 1 >>log 2>&1 || true
mv overflow/capsules/step-1 capsule
rm -r overflow log run/events.out.tfevents.*
du -sh "$folder"
