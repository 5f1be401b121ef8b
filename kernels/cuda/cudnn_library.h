// cuDNN behind an interface of ours: which engine computes a graph, and running
// it. cudnn_library.cc alone includes NVIDIA's headers for that.
//
// Engines are chosen for a target, not for the device at hand: from a
// description of that target's usual device, so that a plan (its workspace
// above all) is the same on every machine, and needs no GPU.
#ifndef HALFTONE_KERNELS_CUDA_CUDNN_LIBRARY_H_
#define HALFTONE_KERNELS_CUDA_CUDNN_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/cuda/cudnn_graph.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {
namespace cuda {

// What cuDNN's library of classes says of the construction; asks for no
// engine.
absl::Status ValidateCudnnGraph(const CudnnGraph& graph);

struct CudnnEngine {
  std::string name;  // "eng62_k2=5_k13=1": the library's number and settings
  int64_t workspace_bytes = 0;
};
// The engine that cuDNN's heuristics prefer on `target` (a GPU's of
// graph/targets), of those that give full precision and need little workspace;
// one that needs more where there is no other, but for attention.
// kUnimplemented: there is none. Other errors (kDevice) are of the library: it
// is too old or its parts are missing.
absl::StatusOr<CudnnEngine> ChooseCudnnEngine(const CudnnGraph& graph,
                                              absl::string_view target);

// A library handle of one executor. It is bound to the stream at each call, and
// ends before its device does.
class CudnnHandle {
 public:
  virtual ~CudnnHandle() = default;
};
absl::StatusOr<std::shared_ptr<CudnnHandle>> MakeCudnnHandle(
    runtime::Device& device);

// A graph that is ready to run on a device, for any number of kernels there.
class CudnnPlan {
 public:
  virtual ~CudnnPlan() = default;
  // `data`: by position in the graph's tensors; those of internal ones are
  // ignored. Enqueues only. `op` is for errors, which are of class kDevice.
  virtual absl::Status Enqueue(absl::Span<void* const> data, void* workspace,
                               runtime::Stream& stream,
                               absl::string_view op) = 0;
};
// The engine that the device prefers among those that need no more than
// `workspace_bytes`. `op` is for errors.
absl::StatusOr<std::unique_ptr<CudnnPlan>> MakeCudnnPlan(
    const CudnnGraph& graph, std::shared_ptr<CudnnHandle> handle,
    int64_t workspace_bytes, absl::string_view op);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CUDNN_LIBRARY_H_
