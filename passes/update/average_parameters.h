// average-parameters: means of the parameters over the steps, which evaluation
// reads in their place.
//
//   before (train): sgd.0: sgd(Param=[w], ...) -> (ParamOut=[w.next], ...)
//   before (eval): fc: matmul(X=x, Y=w) -> (...)
//   after: in addition a cell w.ema, f32 at every level, that begins as w
//     ema: ema(Average=[w.ema], Param=[w.next], Applied=@applied,
//         FoundInf=@found_inf) -> (AverageOut=[w.ema.next]) {decay=0.999}
//     commit w.ema <- w.ema.next
//   after (eval): fc: matmul(X=x, Y=w.ema) -> (...)
//
// One op holds all parameters of a dtype. What is not updated (frozen
// parameters) has no average. Running statistics stay what they are, as in
// PyTorch's AveragedModel.
#ifndef HALFTONE_PASSES_UPDATE_AVERAGE_PARAMETERS_H_
#define HALFTONE_PASSES_UPDATE_AVERAGE_PARAMETERS_H_

#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class AverageParameters : public Pass {
 public:
  explicit AverageParameters(const proto::Ema& ema) : ema_(ema) {}

  absl::string_view name() const override { return "average-parameters"; }
  // Errors (kModel): the model has something of an average's name.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  proto::Ema ema_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_AVERAGE_PARAMETERS_H_
