// insert-casts: applies the decisions of assign-precision. Every op gets its
// inputs and outputs in its precision; what differs is cast, once per value
// and dtype, right before the first op that asks.
//
//   before
//     cell w : f32[16,1,5,5] parameter trainable applied init=...
//     c: conv2d(Input=x, Filter=w) -> (Output=c : f32[B,16,28,28])   forward f16 WHITE_LIST
//     b: batch_norm(X=c, Scale=s, ...) -> (Y=b : f32[B,16,28,28], ...)   forward f16 GRAY_ALL_LOW <- c
//     e: exp(X=b) -> (Out=e : f32[B,16,28,28])   forward f32 BLACK_LIST
//   after
//     x.cast_fp16: cast(X=x) -> (Out=x.cast_fp16 : f16[B,1,28,28]) {to=f16}   forward f16 WHITE_LIST <- c
//     w.cast_fp16: cast(X=w) -> (Out=w.cast_fp16 : f16[16,1,5,5]) {to=f16}   forward f16 WHITE_LIST <- c
//     c: conv2d(Input=x.cast_fp16, Filter=w.cast_fp16) -> (Output=c : f16[B,16,28,28])   ...
//     b: batch_norm(X=c, Scale=s, ...) -> (Y=b : f16[B,16,28,28], ...)   ...
//     b.cast_fp32: cast(X=b) -> (Out=b.cast_fp32 : f32[B,16,28,28]) {to=f32}   forward f32 BLACK_LIST <- e
//     e: exp(X=b.cast_fp32) -> (Out=e : f32[B,16,28,28])   ...
//
// KeepF32 slots read f32 at every level. A cast has the reason of the op that
// asked first (KEEP_F32_SLOT where a slot did). Feeds, statistics and integers
// never change; a `cast` of the model's own keeps the dtypes it was given.
//
// With copies and keep_batchnorm_fp32: false (at O2, and O3 with
// master_weights: true) KeepF32 slots of low ops read parameters through their
// low copies: `<w>.cast_fp16`, cast up again.
//
// Without FP32 copies (O3, master_weights: false) the parameters' cells become
// low here, before all casts; KeepF32 slots then read `<w>.cast_fp32`, unless
// keep_batchnorm_fp32 keeps such cells f32. Those that only ops of FP32 scopes
// read stay f32, too.
#ifndef HALFTONE_PASSES_PRECISION_INSERT_CASTS_H_
#define HALFTONE_PASSES_PRECISION_INSERT_CASTS_H_

#include "absl/types/span.h"
#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class InsertCasts : public Pass {
 public:
  explicit InsertCasts(const proto::Amp& amp)
      : low_(LowOf(amp)),
        low_cells_(LevelOf(amp) != Level::kO0 && !amp.master_weights()),
        keep_f32_slot_cells_(amp.keep_batchnorm_fp32()),
        round_f32_slots_(amp.master_weights() && !amp.keep_batchnorm_fp32() &&
                         LevelOf(amp) >= Level::kO2) {}

  absl::string_view name() const override { return "insert-casts"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  DType low_;
  bool low_cells_;
  bool keep_f32_slot_cells_;
  bool round_f32_slots_;
};

// How many casts of values that are no cells' the pass inserts where these are
// the decisions (by op id) of the ops of `train`, at O1.
int CountCasts(const Program& program, absl::Span<const Decision> decisions);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_INSERT_CASTS_H_
