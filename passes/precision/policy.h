// What the strategy says about an op by itself. How ops that follow their
// inputs or readers are decided is assign-precision's matter.
#ifndef HALFTONE_PASSES_PRECISION_POLICY_H_
#define HALFTONE_PASSES_PRECISION_POLICY_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/error_list.h"
#include "graph/ir/program.h"
#include "passes/kernel_set.h"
#include "passes/options/options.h"
#include "passes/precision/op_classes.h"

namespace halftone {
namespace passes {

struct PolicyDecision {
  enum class Kind : uint8_t { kF32, kLow, kFollows };
  Kind kind = Kind::kFollows;
  Reason reason = Reason::kNone;  // unless it follows
  AmpClass amp_class = AmpClass::kGray;
};

class PrecisionPolicy {
 public:
  // Both are borrowed.
  PrecisionPolicy(const Options& options, const KernelSet& kernels);

  // Matches the globs of the user's lists against the names in `block`.
  // Errors, as FieldError: a glob that matches nothing (but for a scope's), an
  // op matched by both a white and a black one, or a white one and a scope.
  absl::Status MatchNames(const Block& block);

  // The first that applies: FP32_SCOPE, BLACK_VARNAME, user op name, user op
  // type, NO_FLOAT_INPUT, level or class.
  PolicyDecision Of(const Op& op, bool has_float_input) const;

  // Whether the target has the op in low precision.
  bool HasLowKernel(const Op& op);
  // For a user-listed white op without one.
  absl::Status NoKernelError(const Block& block, const Op& op) const;

  DType low() const { return low_; }
  // all_low is what holds where no rule is asked.
  PrecisionRule rule() const { return rule_; }

 private:
  enum class Choice : uint8_t { kNone, kWhite, kBlack, kScope };
  void MatchVariables(const Block& block, ErrorList* errors);
  void MatchOps(const Block& block, absl::string_view path,
                const google::protobuf::RepeatedPtrField<std::string>& globs,
                Choice choice, ErrorList* errors);
  Choice UserChoice(const Op& op) const;
  PolicyDecision ByClass(const Op& op) const;

  const Options& options_;
  const Level level_;
  const DType low_;
  const PrecisionRule rule_;
  const KernelSet& kernels_;
  OpClasses classes_;
  absl::flat_hash_map<const OpSchema*, Choice> types_;
  std::vector<Choice> names_;          // by op id; empty: no globs
  std::vector<bool> black_variables_;  // by value id; empty: no globs
  absl::flat_hash_map<const OpSchema*, bool> low_kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_POLICY_H_
