#!/bin/bash
# A net whose steps take seconds: on a terminal training and eval say how far
# they are meanwhile, in a line that fits; in a file only messages stand.
set -eu
. tests/op_library/library.sh

# Out = X, in 5 s.
cat >nap.cc <<'END_OF_LIBRARY'
#include <chrono>
#include <thread>

#include "kernels/plugin/halftone_op.h"
namespace ho = halftone::op;
HALFTONE_OP_LIBRARY("nap", "1.0", library) {
  library.Op("nap", "Out = X.")
      .TypeVar("T", {ho::kF32})
      .In("X", "T")
      .Out("Out", "T")
      .Amp(ho::kBlack)
      .Infer(ho::SameDims)
      .Gradient(ho::GradientOp("assign")
                    .In("X", ho::OutGrad("Out"))
                    .Out("Out", "X"))
      .Kernel(ho::kCpu, {ho::kF32}, [](ho::Call& call) {
        std::this_thread::sleep_for(std::chrono::seconds(5));
        std::memcpy(call.Output<float>(0), call.Input<float>(0),
                    4 * call.elements());
      });
}
END_OF_LIBRARY
build nap -Wall -Wextra -Werror

cat >slow.pbtxt <<'END'
name: "slow"
feed { name: "image" dtype: U8 dims: [-1, 1, 28, 28] }
feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [784, 10] init { uniform { bound: 0.05 } } }
op { type: "image_normalize" in { slot: "X" var: "image" }
     out { slot: "Out" var: "x" } attr { name: "std" f: 255 } }
op { type: "flatten" in { slot: "X" var: "x" } out { slot: "Out" var: "flat" } }
op { type: "nap" in { slot: "X" var: "flat" } out { slot: "Out" var: "late" } }
op { type: "matmul" in { slot: "X" var: "late" } in { slot: "Y" var: "w" }
     out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" }
     in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "ce" }
END
train=(run slow.pbtxt --op-library ./libnap.so --data "$data" --level O0
  --set optimizer.sgd= --set train.batch_size=1438 --epochs 1)

# shown COLUMNS COMMAND: what it writes on a terminal, a rewritten line in each.
shown() {
  script -qec "stty cols $1; NO_COLOR=1 $halftone $2" /dev/null </dev/null |
    tr '\r' '\n' | sed 's/^\x1b\[K//'
}
shown 60 "${train[*]} --out run" >train.txt
grep -qE '^train +step 1 of 1, [2-4]([.][0-9])? s in it so far' train.txt ||
  fail "no sign of a slow step: $(cat train.txt)"
grep -qE '^epoch 1/1 .*loss .*img/s .*eta ' train.txt ||
  fail "no line of the epoch: $(cat train.txt)"
grep -qE '^eval 1 +(0 of 359, )?[2-4]([.][0-9])? s so far' train.txt ||
  fail "no sign of the eval: $(cat train.txt)"
! grep -E '^(epoch|train|eval) .{54}' train.txt >wide.txt ||
  fail "too wide: $(cat wide.txt)"

shown 80 "eval run --op-library ./libnap.so --data $data" >eval.txt
grep -qE '^eval +(0 of 359, )?[2-4]([.][0-9])? s so far' eval.txt ||
  fail "no sign of the eval: $(cat eval.txt)"

"$halftone" eval run --op-library ./libnap.so --data "$data" >out.txt 2>/dev/null
[ "$(wc -l <out.txt)" = 1 ] || fail "eval answers: $(cat out.txt)"
grep -q '^loss [0-9.]*  in the compiled precision' out.txt ||
  fail "eval answers: $(cat out.txt)"
