#include "kernels/cuda/cudnn_cache.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Equal for equal graphs only.
std::string KeyOf(const CudnnGraph& graph, absl::string_view target) {
  std::string key = absl::StrCat(target, graph.deterministic ? " d" : "",
                                 graph.tf32 ? " t" : "");
  for (const CudnnTensor& t : graph.tensors) {
    absl::StrAppend(&key, " ", Name(t.dtype), "[", absl::StrJoin(t.dims, ","),
                    ":", absl::StrJoin(t.strides, ","),
                    t.internal ? "]v" : "]");
  }
  for (const CudnnNode& n : graph.nodes) {
    absl::StrAppend(&key, " ", static_cast<int>(n.kind), "(",
                    absl::StrJoin(n.inputs, ","), ">",
                    absl::StrJoin(n.outputs, ","), ")");
    for (const auto* pair : {&n.stride, &n.dilation, &n.before, &n.after}) {
      absl::StrAppend(&key, " ", (*pair)[0], ",", (*pair)[1]);
    }
  }
  return key;
}

}  // namespace

absl::StatusOr<CudnnEngine> CudnnCache::Choose(const CudnnGraph& graph,
                                               absl::string_view target) {
  const std::string key = KeyOf(graph, target);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = engines_.find(key);
  if (it != engines_.end()) return it->second;
  return engines_.emplace(key, ChooseCudnnEngine(graph, target)).first->second;
}

absl::StatusOr<std::shared_ptr<CudnnHandle>> CudnnCache::HandleOf(
    runtime::Device& device) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<CudnnHandle>& kept = handles_[&device];
  if (std::shared_ptr<CudnnHandle> handle = kept.lock()) return handle;
  HT_ASSIGN_OR_RETURN(std::shared_ptr<CudnnHandle> handle,
                      MakeCudnnHandle(device));
  kept = handle;
  return handle;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
