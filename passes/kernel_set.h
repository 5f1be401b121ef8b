// Which kernels a target has, as data: the compiler never links a kernel, so
// that a model compiles for a GPU on a machine without one.
#ifndef HALFTONE_PASSES_KERNEL_SET_H_
#define HALFTONE_PASSES_KERNEL_SET_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "graph/ir/type.h"
#include "graph/targets/target.h"

namespace halftone {
namespace passes {

class KernelSet {
 public:
  // `keys` are "op(f16,f32)@row_major": op, type variables in the schema's
  // order, layout of the lead slot; "pattern:conv_stats(f16)@channels_last":
  // dtype and layout of the value that the pattern is keyed by.
  // `target` is one of graph/targets (CHECKed).
  KernelSet(absl::string_view target, absl::Span<const std::string> keys);

  const Target& target() const { return *target_; }
  bool prefers_channels_last() const {
    return target_->image_layout == Layout::kChannelsLast;
  }
  bool Has(absl::string_view op, absl::Span<const DType> binding,
           Layout layout) const;
  bool HasPattern(absl::string_view pattern, const TensorType& key) const;
  // Whether there is any key of the op.
  bool HasAny(absl::string_view op) const { return ops_.contains(op); }
  // Whether any key of the op has the dtype for its lead type variable.
  bool HasPrecision(absl::string_view op, DType lead) const;
  // Keys of the op, sorted: for error messages.
  std::vector<std::string> KeysOf(absl::string_view op) const;

  static std::string Key(absl::string_view op, absl::Span<const DType> binding,
                         Layout layout);

 private:
  const Target* target_;
  absl::flat_hash_set<std::string> keys_;
  absl::flat_hash_set<std::string> ops_;         // of which there are keys
  absl::flat_hash_set<std::string> precisions_;  // "op(f16"
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_KERNEL_SET_H_
