// keep-taps: values that somebody wants to see (run --fetch) become results of
// train, so that no later pass hides them in a fusion, folds or drops them.
//
//   before:  fc0: matmul(X=x, Y=w) -> (Out=fc0 : f16[B,256])
//   after:   in addition  result fc0 = fc0
//
// Runs once all values are there and before any of them can go.
#ifndef HALFTONE_PASSES_LOWER_KEEP_TAPS_H_
#define HALFTONE_PASSES_LOWER_KEEP_TAPS_H_

#include <string>
#include <utility>
#include <vector>

#include "passes/pass.h"

namespace halftone {
namespace passes {

class KeepTaps : public Pass {
 public:
  // Errors of Run: a name that is no value of train (kUsage).
  explicit KeepTaps(std::vector<std::string> names)
      : names_(std::move(names)) {}

  absl::string_view name() const override { return "keep-taps"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  std::vector<std::string> names_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_KEEP_TAPS_H_
