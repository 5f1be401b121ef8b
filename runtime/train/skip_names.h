// What to call a gradient that made a step be skipped.
#ifndef HALFTONE_RUNTIME_TRAIN_SKIP_NAMES_H_
#define HALFTONE_RUNTIME_TRAIN_SKIP_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/program.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

class SkipNames {
 public:
  explicit SkipNames(const Program& program);

  // Of check_finite's FirstBad: "conv2.w.grad", after the parameter, whatever
  // the passes called what they check.
  std::string NameOf(int64_t first_bad) const;
  // Whether no value is at fault, but the sum of all squares.
  bool IsNorm(int64_t first_bad) const;
  // "conv2.w.grad has inf", from the step's squared norms where they were
  // fetched; "bn1.global_variance is not finite"; "the gradients' norm
  // overflows f32, for the most part by conv2.w.grad".
  std::string Describe(int64_t first_bad, const StepView& view) const;

 private:
  std::vector<std::string> names_;
  int64_t gradients_ = 0;  // of them; statistics come behind
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_SKIP_NAMES_H_
