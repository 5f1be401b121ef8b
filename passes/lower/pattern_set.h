// The fusion patterns that a compilation may use.
#ifndef HALFTONE_PASSES_LOWER_PATTERN_SET_H_
#define HALFTONE_PASSES_LOWER_PATTERN_SET_H_

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/check.h"
#include "graph/fusions/fusion_pattern.h"
#include "passes/kernel_set.h"
#include "passes/lower/kernel_key.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

class PatternSet {
 public:
  // `kernels` is borrowed. Strict: none that rounds the value of a KeepF32
  // slot.
  PatternSet(const KernelSet& kernels, bool strict_f32_slots)
      : kernels_(kernels),
        lookup_(kernels),
        strict_f32_slots_(strict_f32_slots) {}

  // Whether it can be used at all: without looking at types.
  bool Has(const FusionPattern& pattern) const {
    return !(strict_f32_slots_ && !pattern.rounds().empty()) &&
           kernels_.HasAny(absl::StrCat("pattern:", pattern.name()));
  }
  // `key`: the type of the value that the pattern is keyed by.
  bool Has(const FusionPattern& pattern, const TensorType& key) const {
    return !(strict_f32_slots_ && !pattern.rounds().empty()) &&
           lookup_.HasPattern(pattern, key);
  }
  // By the name of a pattern that there is.
  bool Has(absl::string_view name, const TensorType& key) const {
    return Has(Find(name), key);
  }
  // Whether the op could take the role in a pattern that is keyed by the type
  // of what it reads in the slot.
  bool HasFor(absl::string_view name, absl::string_view role,
              absl::string_view slot, const Block& block, OpId op,
              const HeldValues& held) const {
    const FusionPattern& pattern = Find(name);
    return pattern.CanTake(role, block, op, held.function()) &&
           Has(pattern, block.type(InputOf(block.op(op), slot)));
  }

 private:
  static const FusionPattern& Find(absl::string_view name) {
    const FusionPattern* pattern = FindFusionPattern(name);
    HT_CHECK(pattern != nullptr, "no such pattern");
    return *pattern;
  }

  const KernelSet& kernels_;
  mutable KernelLookup lookup_;  // remembers
  bool strict_f32_slots_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERN_SET_H_
