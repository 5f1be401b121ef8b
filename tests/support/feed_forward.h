// The feed-forward block of a transformer, for tests: a model of digits.
#ifndef HALFTONE_TESTS_SUPPORT_FEED_FORWARD_H_
#define HALFTONE_TESTS_SUPPORT_FEED_FORWARD_H_

namespace halftone {

// Linear, gelu by tanh, linear, and what it started from added; then a head.
inline constexpr char kFeedForward[] = R"(
name: "feed_forward"  format: 1
feed { name: "image" dtype: U8 dims: [-1, 1, 8, 8] }
feed { name: "label" dtype: I64 dims: [-1] }
op { type: "image_normalize" in { slot: "X" var: "image" }
     out { slot: "Out" var: "x" } attr { name: "std" f: 255 } }
op { type: "flatten" in { slot: "X" var: "x" } out { slot: "Out" var: "token" }
     attr { name: "start_axis" i: 2 } }
param { name: "up.w" dims: [64, 256] init { kaiming_uniform { a: 2.236068 } } }
param { name: "up.b" dims: [256] init { uniform { bound: 0.125 } } }
op { type: "matmul" in { slot: "X" var: "token" } in { slot: "Y" var: "up.w" }
     in { slot: "Bias" var: "up.b" } out { slot: "Out" var: "up" } }
op { type: "gelu" in { slot: "X" var: "up" } out { slot: "Out" var: "act" }
     attr { name: "approximate" s: "tanh" } }
param { name: "down.w" dims: [256, 64]
        init { kaiming_uniform { a: 2.236068 } } }
param { name: "down.b" dims: [64] init { uniform { bound: 0.0625 } } }
op { type: "matmul" in { slot: "X" var: "act" } in { slot: "Y" var: "down.w" }
     in { slot: "Bias" var: "down.b" } out { slot: "Out" var: "down" } }
op { type: "elementwise_add" in { slot: "X" var: "down" }
     in { slot: "Y" var: "token" } out { slot: "Out" var: "sum" } }
op { type: "flatten" in { slot: "X" var: "sum" } out { slot: "Out" var: "rows" }
     attr { name: "start_axis" i: 1 } }
param { name: "head.w" dims: [64, 10] init { kaiming_uniform { a: 2.236068 } } }
param { name: "head.b" dims: [10] init { uniform { bound: 0.125 } } }
op { type: "matmul" in { slot: "X" var: "rows" } in { slot: "Y" var: "head.w" }
     in { slot: "Bias" var: "head.b" } out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" }
     in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "ce" }
output: "logits"
)";

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_FEED_FORWARD_H_
