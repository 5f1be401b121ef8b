// Kernels of the CPU under their schemas' keys.
#ifndef HALFTONE_KERNELS_CPU_DISPATCH_H_
#define HALFTONE_KERNELS_CPU_DISPATCH_H_

#include "kernels/common/dispatch.h"

namespace halftone {
namespace kernels {

inline void AddForSchema(KernelRegistry& registry, absl::string_view op,
                         const Candidate& candidate,
                         absl::Span<const absl::string_view> unbound = {}) {
  AddForSchema(registry, "cpu", op, candidate, unbound);
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_DISPATCH_H_
