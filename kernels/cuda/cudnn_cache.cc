#include "kernels/cuda/cudnn_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Equal for equal graphs and purposes only.
std::string KeyOf(const CudnnGraph& graph, absl::string_view purpose) {
  std::string key = absl::StrCat(purpose, graph.deterministic ? " d" : "",
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
      absl::StrAppend(&key, " ", absl::StrJoin(*pair, ","));
    }
    absl::StrAppend(&key, n.causal ? " c " : " ", n.scale);
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
                      make_handle_(device));
  kept = handle;
  return handle;
}

absl::StatusOr<std::shared_ptr<CudnnPlan>> CudnnCache::PlanOf(
    const CudnnGraph& graph, runtime::Device& device, int64_t workspace_bytes,
    absl::string_view op) {
  const std::pair key(&std::as_const(device),
                      KeyOf(graph, absl::StrCat(workspace_bytes)));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::shared_ptr<CudnnPlan> plan = plans_[key].lock()) return plan;
  }
  HT_ASSIGN_OR_RETURN(auto handle, HandleOf(device));
  // Other devices' threads build theirs meanwhile.
  HT_ASSIGN_OR_RETURN(
      auto made, make_plan_(graph, std::move(handle), workspace_bytes, op));
  std::shared_ptr<CudnnPlan> plan = std::move(made);
  std::lock_guard<std::mutex> lock(mutex_);
  plans_[key] = plan;
  return plan;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
