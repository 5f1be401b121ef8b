// A training's updates, one op of one method after another, as a rank runs
// them: what a step makes is what the next one reads.
#ifndef HALFTONE_TESTS_NUMERICS_OPTIMIZER_STEPS_H_
#define HALFTONE_TESTS_NUMERICS_OPTIMIZER_STEPS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/ir/attr.h"

namespace halftone {

using Values = std::vector<double>;

struct OptimizerState {
  std::string slot;
  double initial = 0;
};

struct OptimizerCase {
  std::string name;  // "rmsprop_centered"
  std::string op;
  std::vector<OptimizerState> states;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  bool reads_applied = false;
  double rate = 0.01;
};

// Every method, and the forms that it has.
const std::vector<OptimizerCase>& OptimizerCases();

class OptimizerSteps {
 public:
  // Gradients are stored in `grad`; f16 copies are written beside f32
  // parameters.
  OptimizerSteps(const OptimizerCase& method, std::vector<Values> parameters,
                 DType grad, int threads);

  // One step; the stored gradients are times 1/64 what is meant.
  void Step(const std::vector<Values>& gradients, bool reject = false);

  const std::vector<Values>& parameters() const { return parameters_; }
  int64_t applied() const { return applied_; }

 private:
  const OptimizerCase& method_;
  DType grad_;
  int threads_;
  std::vector<Values> parameters_;
  std::vector<std::vector<Values>> states_;  // [state][member]
  int64_t applied_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_TESTS_NUMERICS_OPTIMIZER_STEPS_H_
