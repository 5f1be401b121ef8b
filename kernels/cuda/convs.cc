#include "kernels/cuda/convs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Images of two spatial dims alone have layouts.
void Add(KernelRegistry& registry, absl::string_view op,
         const std::vector<Candidate>& candidates, int spatial,
         int type_variables = 1) {
  for (const Layout layout : {Layout::kRowMajor, Layout::kChannelsLast}) {
    if (layout == Layout::kChannelsLast && spatial != 2) continue;
    for (const DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
      const std::vector<DType> binding(type_variables, t);
      for (const Candidate& candidate : candidates) {
        registry.Add(op, binding, layout, candidate);
      }
    }
  }
}

}  // namespace

void AddCudaConvs(KernelRegistry& registry, const ConvCandidates& candidates) {
  for (const int spatial : {1, 2, 3}) {
    const std::string conv = absl::StrCat("conv", spatial, "d");
    Add(registry, conv, candidates.result, spatial);
    Add(registry, conv + "_transpose", candidates.transposed, spatial);
    Add(registry, conv + "_grad_input", candidates.image, spatial);
    Add(registry, conv + "_grad_filter", candidates.filter, spatial, 2);
  }
  Add(registry, "depthwise_conv2d", candidates.result, 2);
  Add(registry, "depthwise_conv2d_transpose", candidates.transposed, 2);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
