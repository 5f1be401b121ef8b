// Kernels by key. Filled by explicit functions (register_all.h).
#ifndef HALFTONE_KERNELS_KERNEL_REGISTRY_H_
#define HALFTONE_KERNELS_KERNEL_REGISTRY_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

// The kernels of one library, for the devices that it is for: the binary's own
// run on CPUs, the GPU library's on GPUs.
class KernelRegistry {
 public:
  // `binding`: dtypes of the schema's type variables in order. Registering a
  // key twice appends the candidate.
  void Add(absl::string_view op, absl::Span<const DType> binding, Layout layout,
           Candidate candidate);
  // A fused kernel for a pattern, once for each dtype and layout of the value
  // that the pattern is keyed by (graph/fusions); `supports` decides on shapes
  // and on what else has a type.
  void AddPattern(absl::string_view pattern, absl::Span<const DType> dtypes,
                  absl::Span<const Layout> layouts, Candidate candidate);

  // Changes candidates in a copy of a registry: for tests that break a kernel
  // and benchmarks that leave it out. Keys as All gives them.
  void ForEach(const std::function<void(absl::string_view key,
                                        Candidate& candidate)>& change);

  // The candidates that support the bound op, best first; an empty list for a
  // fusion means "inline the body". For any other op an empty list is an
  // error (kModel) that names op, key and the nearest keys.
  absl::StatusOr<std::vector<const Candidate*>> Find(const BoundOp& op) const;

  // Why no candidate supports the bound fusion, in the words of the first that
  // says so; empty: none does.
  std::string Refusal(const BoundOp& fusion) const;

  // All keys as passes::KernelSet takes them: "matmul(f16,f32)@row_major",
  // "pattern:conv_stats(f16)@channels_last"; sorted.
  std::vector<std::string> Keys() const;

  // (key, candidate): for the conformance suite.
  std::vector<std::pair<std::string, const Candidate*>> All() const;

 private:
  std::map<std::string, std::vector<Candidate>> candidates_;  // by key
};

// The process's registry with every kernel of this binary.
const KernelRegistry& Kernels();

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_KERNEL_REGISTRY_H_
