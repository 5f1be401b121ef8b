// generate-startup: the entries that give cells their first values.
//
//   before
//     cell w : f32[784,256] parameter ... init=kaiming_uniform(2.236068)
//     cell w.cast_fp16 : f16[784,256] derived(w) applied
//   after: in addition
//     entry init {
//       feed @seed : i64[]
//       w.init: init_uniform(Seed=@seed) -> (Out=w.init : f32[784,256])
//           {shape=[784, 256], low=-0.0357, high=0.0357, stream=...}
//       commit w <- w.init
//     }
//     entry derive {
//       w.cast_fp16.init: cast(X=w) -> (Out=w.cast_fp16.init) {to=f16}
//       commit w.cast_fp16 <- w.cast_fp16.init
//     }
//
// A cell's random stream is a hash of its name: its first value depends on
// the seed, its name and its initialiser, never on what else is in the model.
// A low parameter cell is drawn in f32 and rounded once. `derive` runs after
// `init` and after every load. Programs that have an `init` are left alone.
#ifndef HALFTONE_PASSES_LOWER_GENERATE_STARTUP_H_
#define HALFTONE_PASSES_LOWER_GENERATE_STARTUP_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class GenerateStartup : public Pass {
 public:
  absl::string_view name() const override { return "generate-startup"; }
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_GENERATE_STARTUP_H_
