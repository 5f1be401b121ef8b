// A small program that obeys every rule, lowered and with startup entries:
// the verifier's negative cases are edits of it.
#ifndef HALFTONE_GRAPH_VERIFY_TEST_PROGRAM_H_
#define HALFTONE_GRAPH_VERIFY_TEST_PROGRAM_H_

namespace halftone {

inline constexpr char kGoodProgram[] = R"(program "good" dim B
loss loss over ce
constant two : f32[] = [2]
cell w : f32[4,3] parameter trainable applied init=constant(0.5) line=4
cell s : f32[3] parameter trainable applied init=constant(1)
cell mean : f32[3] statistic applied init=constant(0)
cell var : f32[3] statistic applied init=constant(1)
cell w.velocity : f32[4,3] slot(w) applied init=constant(0)
cell s.velocity : f32[3] slot(s) applied init=constant(0)
cell w.low : f16[4,3] derived(w) applied
cell @loss_scaling : f32[] scaler always init=constant(32768)
cell @good_steps : i32[] scaler always init=constant(0)
cell @bad_steps : i32[] scaler always init=constant(0)
cell @attempted : i64[] clock always init=constant(0)
cell @applied : i64[] clock applied init=constant(0)
entry train {
  feed x : f16[B,4]
  feed label : i64[B]
  feed @largest_count : f32[]
  feed @schedule : f32[3]
  feed verdict : bool[]
  feed image : f32[B,3,2,2]
  logits: matmul(X=x, Y=w.low) -> (Out=logits : f16[B,3])   forward f16 WHITE_LIST line=9
  ce: softmax_with_cross_entropy(Logits=logits, Label=label) -> (Loss=ce : f32[B])   forward f32 BLACK_LIST line=10
  loss: mean(X=ce) -> (Out=loss : f32[])   forward f32 LOSS line=11
  n: element_count(X=ce) -> (Out=n : f32[])   loss-scale f32 SCHEMA
  loss.grad: gradient_seed(LossScaling=@loss_scaling, Count=n, LargestCount=@largest_count, Loss=loss) -> (Out=loss.grad : f32[])   loss-scale f32 SCHEMA
  ce.grad: broadcast_like(X=loss.grad, Like=ce) -> (Out=ce.grad : f32[B]) {mean=true}   backward f32 GRADIENT_OF <- loss
  logits.grad: softmax_with_cross_entropy_grad(Logits=logits, Label=label, LossGrad=ce.grad) -> (LogitsGrad=logits.grad : f16[B,3])   backward f32 GRADIENT_OF <- ce
  w.low.grad: matmul(X=x, Y=logits.grad) -> (Out=w.low.grad : f16[4,3]) {trans_x=true}   backward f16 GRADIENT_OF <- logits
  s.grad: reduce_sum(X=logits.grad) -> (Out=s.grad : f32[3]) {dim=[0]}   backward f32 GRADIENT_OF <- logits
  bucket: all_reduce(X=[w.low.grad]) -> (Out=[w.low.grad.reduced : f16[4,3]]) {gradient_scale="pre"}   communicate f16 SCHEMA
  w.grad: cast(X=w.low.grad.reduced) -> (Out=w.grad : f32[4,3]) {to=f32}   backward f32 GRADIENT_OF <- logits
  bucket2: all_reduce(X=[s.grad]) -> (Out=[s.grad.reduced : f32[3]])   communicate f32 SCHEMA
  totals: all_reduce(X=[loss, n]) -> (Out=[loss.sum : f32[], n.sum : f32[]]) {of="totals"}   communicate f32 SCHEMA
  inv: gradient_inv_scale(LossScaling=@loss_scaling, Count=n.sum, LargestCount=@largest_count) -> (InvScale=inv : f32[])   loss-scale f32 SCHEMA
  check: check_finite(Low=[w.low.grad.reduced], F32=[s.grad.reduced], InvScale=inv) -> (FoundInf=found_inf : bool[], FirstBad=first_bad : i32[], SquaredNorm=norm : f32[2])   loss-scale f32 SCHEMA
  w.u: unscale(X=w.grad, InvScale=inv) -> (Out=w.u : f32[4,3])   loss-scale f32 SCHEMA
  scaler: update_loss_scaling(LossScaling=@loss_scaling, GoodSteps=@good_steps, BadSteps=@bad_steps, FoundInf=found_inf) -> (LossScalingOut=scale.next : f32[], GoodStepsOut=good.next : i32[], BadStepsOut=bad.next : i32[])   loss-scale f32 SCHEMA
  lr: learning_rate(Applied=@applied, Schedule=@schedule) -> (Out=lr : f32[])   optimize f32 SCHEMA
  update: momentum(Param=[w], Grad=[w.u], Velocity=[w.velocity], LearningRate=lr, FoundInf=found_inf) -> (ParamOut=[w.next : f32[4,3]], VelocityOut=[w.velocity.next : f32[4,3]], LowOut=[w.low.next : f16[4,3]])   optimize f32 SCHEMA
  update2: momentum(Param=[s], Grad=[s.grad.reduced], Velocity=[s.velocity], LearningRate=lr, FoundInf=found_inf, InvScale=inv) -> (ParamOut=[s.next : f32[3]], VelocityOut=[s.velocity.next : f32[3]])   optimize f32 SCHEMA
  stats: running_stats(OldMean=mean, OldVariance=var, BatchMean=s, BatchVariance=s, FoundInf=found_inf) -> (Mean=mean.1 : f32[3], Variance=var.1 : f32[3])   optimize f32 SCHEMA
  stats2: running_stats(OldMean=mean.1, OldVariance=var.1, BatchMean=s, BatchVariance=s, FoundInf=found_inf) -> (Mean=mean.next : f32[3], Variance=var.next : f32[3])   optimize f32 SCHEMA
  fused: fusion(X=[inv, n]) -> (Out=[product : f32[]]) {pattern="elementwise_chain"}   optimize f32 SCHEMA body {
    feed a : f32[]
    feed b : f32[]
    c: scale(X=a) -> (Out=c : f32[])   forward
    d: relu(X=c) -> (Out=d : f32[])   forward
    return d
  }
  doubled: elementwise_mul(X=product, Y=two) -> (Out=doubled : f32[])   optimize f32 SCHEMA
  tick: tick(X=@attempted) -> (Out=attempted.next : i64[])   optimize f32 SCHEMA
  tick_applied: tick_applied(X=@applied, FoundInf=found_inf) -> (Out=applied.next : i64[])   optimize f32 SCHEMA
  commit w <- w.next
  commit w.velocity <- w.velocity.next
  commit w.low <- w.low.next
  commit s <- s.next
  commit s.velocity <- s.velocity.next
  commit mean <- mean.next
  commit var <- var.next
  commit @loss_scaling <- scale.next
  commit @attempted <- attempted.next
  commit @applied <- applied.next
  result @found_inf = found_inf
  result doubled = doubled
}
entry eval {
  feed x : f16[B,4]
  logits: matmul(X=x, Y=w.low) -> (Out=logits : f16[B,3])   forward f16 WHITE_LIST
  result logits = logits
}
entry derive {
  w.low.init: cast(X=w) -> (Out=w.low.init : f16[4,3]) {to=f16}   forward f16 SCHEMA
  commit w.low <- w.low.init
}
)";

}  // namespace halftone

#endif  // HALFTONE_GRAPH_VERIFY_TEST_PROGRAM_H_
