#include "graph/targets/reach.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace halftone {
namespace {

// Rates of a CPU are measured by products and copies as kernels do them, so
// that there is nothing to take off.
Reach OnCpus() {
  Reach reach;
  reach.libraries = {"onednn", "packed"};  // that one multiplies as it does
  reach.fast_products = {DType::kBF16};    // avx512_bf16, AMX
  return reach;
}

// Estimates, as nothing of ours has been timed on a device yet: 2.7 TB/s of an
// H100's 3.35, where copies were seen to reach 3.0.
Reach OnGpus() {
  Reach reach;
  reach.libraries = {"cublaslt", "cudnn"};
  reach.fast_products = {DType::kF16, DType::kBF16};
  reach.flops = 0.8;
  reach.library_memory = 0.8;
  reach.own_memory = 2.7 / 3.35;
  reach.launch = 2e-6;
  return reach;
}

}  // namespace

bool Reach::OfLibrary(absl::string_view kernel) const {
  return std::any_of(libraries.begin(), libraries.end(),
                     [kernel](const std::string& library) {
                       return absl::StartsWith(kernel, library);
                     });
}

const Reach& ReachOn(const Target& target) {
  static const auto* const cpus = new Reach(OnCpus());
  static const auto* const gpus = new Reach(OnGpus());
  return target.is_gpu() ? *gpus : *cpus;
}

}  // namespace halftone
