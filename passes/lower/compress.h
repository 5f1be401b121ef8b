// compress: backward reads values of the forward part in few bits per element
// (Chen et al., "ActNN", ICML 2021).
//
//   before (train)
//     c: conv2d(Input=r, Filter=w) -> (Output=c : f32[B,16,8,8])
//     ...
//     w.grad: conv2d_grad_filter(Input=r, OutputGrad=c.grad) -> (...)   backward f32 GRADIENT_OF <- c
//   after
//     c: conv2d(Input=r, Filter=w) -> (Output=c : f32[B,16,8,8])
//     r.packed: quantize_groups(X=r, Seed=@seed, Step=@attempted, FirstSample=@first_sample) -> (Codes=r.codes : u8[B,256], Scales=r.scales : f32[B,4,2]) {bits=2, stream=...}   forward f32 COMPRESSED <- r
//     ...
//     r.unpacked: dequantize_groups(Like=r, Codes=r.codes, Scales=r.scales) -> (Out=r.unpacked : f32[B,16,8,8]) {bits=2}   backward f32 COMPRESSED <- r
//     w.grad: conv2d_grad_filter(Input=r.unpacked, OutputGrad=c.grad) -> (...)   backward f32 GRADIENT_OF <- c
//
// Packed behind its last reader in the forward part, unpacked before its first
// in backward: between them only the codes lie in memory. What is packed is all
// that may be (compressible.h), or, under memory.recompute.within, what
// recompute_choice.h weighs against making it again; the pass recompute then
// has its choice of the rest. It runs behind fuse and clean-up, as that does:
// readers are what they will be, and no pass can take one for its original.
#ifndef HALFTONE_PASSES_LOWER_COMPRESS_H_
#define HALFTONE_PASSES_LOWER_COMPRESS_H_

#include "graph/targets/target.h"
#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class Compress : public Pass {
 public:
  // They outlive the pass.
  Compress(const proto::Strategy& strategy, const Target& target)
      : strategy_(strategy), target_(target) {}

  absl::string_view name() const override { return "compress"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  absl::StatusOr<bool> RunOn(Entry& entry);

  const proto::Strategy& strategy_;
  const Target& target_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_COMPRESS_H_
