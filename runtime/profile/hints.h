// What would make a step of a plan take less, as far as its facts say.
#ifndef HALFTONE_RUNTIME_PROFILE_HINTS_H_
#define HALFTONE_RUNTIME_PROFILE_HINTS_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "graph/targets/target.h"
#include "runtime/plan/plan.h"
#include "runtime/profile/roofline.h"

namespace halftone {
namespace runtime {

class Hints {
 public:
  // Both outlive it.
  Hints(const Plan& plan, const Target& target);

  // A few words; empty: nothing is known. `bound` of a step that was predicted.
  std::string For(const Step& step, std::optional<Bound> bound) const;

 private:
  const Plan& plan_;
  const Target& target_;
  // By the body that runs op by op.
  absl::flat_hash_map<const Block*, const InlinedFusion*> inlined_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_HINTS_H_
