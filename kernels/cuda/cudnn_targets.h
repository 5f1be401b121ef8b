// The devices that targets stand for, as cuDNN describes one: what it chooses
// engines by. Numbers are of NVIDIA's data sheets, names of its JSON.
#ifndef HALFTONE_KERNELS_CUDA_CUDNN_TARGETS_H_
#define HALFTONE_KERNELS_CUDA_CUDNN_TARGETS_H_

#include "absl/strings/string_view.h"

namespace halftone {
namespace kernels {
namespace cuda {

struct CudnnTarget {
  int compute_capability;  // 10 * major + minor
  absl::string_view properties;
};
// "sm_80" and the devices between are an A100, "sm_90", newer ones and what
// names no GPU an H100.
const CudnnTarget& CudnnTargetOf(absl::string_view target);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CUDNN_TARGETS_H_
