// The kernel key of an op of a program.
#ifndef HALFTONE_PASSES_LOWER_KERNEL_KEY_H_
#define HALFTONE_PASSES_LOWER_KERNEL_KEY_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/ir/program.h"
#include "passes/kernel_set.h"

namespace halftone {
namespace passes {

// Ops that the executor hands to the communicator: no kernel is asked for.
bool IsCollective(const Op& op);

// The layout of the first input, else of the first output.
Layout LeadLayout(const Block& block, const Op& op);

// Asks a kernel set about ops; remembers what it said of a key.
class KernelLookup {
 public:
  explicit KernelLookup(const KernelSet& kernels) : kernels_(kernels) {}

  // Whether the target has a kernel for the op as it stands.
  bool Has(const Block& block, const Op& op);
  // ... if its type variables were these.
  bool Has(const Block& block, const Op& op, absl::Span<const DType> binding);
  // Whether it has one for the pattern, keyed by a value of that type.
  bool HasPattern(const FusionPattern& pattern, const TensorType& key);

 private:
  const KernelSet& kernels_;
  // By schema or pattern, and layout and dtypes in 4 bits each.
  absl::flat_hash_map<std::pair<const void*, uint64_t>, bool> known_;
};

// "matmul(f16,f16)@row_major".
std::string KernelKey(const Block& block, const Op& op);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_KERNEL_KEY_H_
