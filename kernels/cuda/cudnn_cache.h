// What the kernels of one registry share of cuDNN: the engines chosen so far
// and, per device, a handle and the graphs that are built.
#ifndef HALFTONE_KERNELS_CUDA_CUDNN_CACHE_H_
#define HALFTONE_KERNELS_CUDA_CUDNN_CACHE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/cuda/cudnn_library.h"

namespace halftone {
namespace kernels {
namespace cuda {

// For any number of threads. A device is used by one executor, on one thread,
// and so is what there is for it, for as long as a kernel holds it.
class CudnnCache {
 public:
  using MakeHandle = std::function<decltype(MakeCudnnHandle)>;
  using MakePlan = std::function<decltype(MakeCudnnPlan)>;
  explicit CudnnCache(MakeHandle make_handle = MakeCudnnHandle,
                      MakePlan make_plan = MakeCudnnPlan)
      : make_handle_(std::move(make_handle)),
        make_plan_(std::move(make_plan)) {}

  // ChooseCudnnEngine, once per graph and target: planning asks for the same
  // one for every dim binding, candidate and entry.
  absl::StatusOr<CudnnEngine> Choose(const CudnnGraph& graph,
                                     absl::string_view target);

  // As MakeCudnnPlan, once per graph, device and workspace: building takes
  // long, and half of a network's convolutions are like another one.
  absl::StatusOr<std::shared_ptr<CudnnPlan>> PlanOf(const CudnnGraph& graph,
                                                    runtime::Device& device,
                                                    int64_t workspace_bytes,
                                                    absl::string_view op);

 private:
  absl::StatusOr<std::shared_ptr<CudnnHandle>> HandleOf(
      runtime::Device& device);

  const MakeHandle make_handle_;
  const MakePlan make_plan_;
  std::mutex mutex_;
  std::map<std::string, absl::StatusOr<CudnnEngine>> engines_;
  std::map<const runtime::Device*, std::weak_ptr<CudnnHandle>> handles_;
  std::map<std::pair<const runtime::Device*, std::string>,
           std::weak_ptr<CudnnPlan>>
      plans_;
};

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CUDNN_CACHE_H_
