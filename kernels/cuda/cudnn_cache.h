// What the kernels of one registry share of cuDNN: the engines chosen so far
// and a handle per device.
#ifndef HALFTONE_KERNELS_CUDA_CUDNN_CACHE_H_
#define HALFTONE_KERNELS_CUDA_CUDNN_CACHE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/cuda/cudnn_library.h"

namespace halftone {
namespace kernels {
namespace cuda {

// For any number of threads.
class CudnnCache {
 public:
  // ChooseCudnnEngine, once per graph and target: planning asks for the same
  // one for every dim binding, candidate and entry.
  absl::StatusOr<CudnnEngine> Choose(const CudnnGraph& graph,
                                     absl::string_view target);

  // The device's handle for as long as somebody holds it. A device is used by
  // one executor, on one thread, and so is its handle.
  absl::StatusOr<std::shared_ptr<CudnnHandle>> HandleOf(
      runtime::Device& device);

 private:
  std::mutex mutex_;
  std::map<std::string, absl::StatusOr<CudnnEngine>> engines_;
  std::map<const runtime::Device*, std::weak_ptr<CudnnHandle>> handles_;
};

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CUDNN_CACHE_H_
