#include "kernels/kernel_registry.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace {

// Devices share one map: "cpu/matmul(f16,f32)@row_major".
std::string KeyOf(absl::string_view device, absl::string_view op,
                  absl::Span<const DType> binding, Layout layout) {
  const auto name = [](std::string* out, DType dtype) {
    absl::StrAppend(out, Name(dtype));
  };
  return absl::StrCat(device, "/", op, "(", absl::StrJoin(binding, ",", name),
                      ")@", Name(layout));
}

std::string PatternKey(absl::string_view device, absl::string_view pattern,
                       DType dtype, Layout layout) {
  return KeyOf(device, absl::StrCat("pattern:", pattern), {dtype}, layout);
}

// Layout of the first input, else of the first output.
Layout LeadLayout(const BoundOp& op) {
  if (!op.inputs().empty()) return op.inputs()[0].layout;
  if (!op.outputs().empty()) return op.outputs()[0].layout;
  return Layout::kRowMajor;
}

std::string KeyOf(absl::string_view device, const BoundOp& op) {
  if (op.schema().name() == "fusion") {
    const FusedOp fused(op);
    return PatternKey(device, fused.pattern().name(), fused.key().dtype,
                      fused.key().layout);
  }
  return KeyOf(device, op.schema().name(), TypeBinding(op.block(), op.op()),
               LeadLayout(op));
}

}  // namespace

void KernelRegistry::Add(absl::string_view device, absl::string_view op,
                         absl::Span<const DType> binding, Layout layout,
                         Candidate candidate) {
  candidates_[KeyOf(device, op, binding, layout)].push_back(
      std::move(candidate));
}

void KernelRegistry::AddPattern(absl::string_view device,
                                absl::string_view pattern,
                                absl::Span<const DType> dtypes,
                                absl::Span<const Layout> layouts,
                                Candidate candidate) {
  for (DType dtype : dtypes) {
    for (Layout layout : layouts) {
      candidates_[PatternKey(device, pattern, dtype, layout)].push_back(
          candidate);
    }
  }
}

void KernelRegistry::ForEach(
    absl::string_view device,
    const std::function<void(absl::string_view key, Candidate& candidate)>&
        change) {
  const std::string prefix = absl::StrCat(device, "/");
  for (auto& entry : candidates_) {
    if (!absl::StartsWith(entry.first, prefix)) continue;
    const absl::string_view key =
        absl::string_view(entry.first).substr(prefix.size());
    for (Candidate& candidate : entry.second) change(key, candidate);
  }
}

absl::StatusOr<std::vector<const Candidate*>> KernelRegistry::Find(
    absl::string_view device, const BoundOp& op) const {
  std::vector<const Candidate*> found;
  const std::string key = KeyOf(device, op);
  const auto it = candidates_.find(key);
  if (it != candidates_.end()) {
    for (const Candidate& candidate : it->second) {
      if (op.context().deterministic && !candidate.deterministic) continue;
      if (candidate.supports && !candidate.supports(op)) continue;
      found.push_back(&candidate);
    }
  }
  if (!found.empty() || op.schema().name() == "fusion") return found;
  // The op's own keys are its nearest.
  const std::string prefix = absl::StrCat(device, "/", op.schema().name(), "(");
  std::vector<std::string> nearest;
  for (auto near = candidates_.lower_bound(prefix);
       near != candidates_.end() && absl::StartsWith(near->first, prefix) &&
       nearest.size() < 8;
       ++near) {
    nearest.push_back(near->first.substr(device.size() + 1));
  }
  return ModelError(
      op.name(), " (", op.schema().name(), "): no kernel ",
      key.substr(device.size() + 1), " on ", device,
      it == candidates_.end() ? "" : " supports these shapes and attributes",
      nearest.empty()
          ? "; the device has no kernel for this op"
          : absl::StrCat("; there are ", absl::StrJoin(nearest, ", ")));
}

std::string KernelRegistry::Refusal(absl::string_view device,
                                    const BoundOp& fusion) const {
  const auto it = candidates_.find(KeyOf(device, fusion));
  if (it == candidates_.end()) return "";
  for (const Candidate& candidate : it->second) {
    if (!candidate.refusal) continue;
    std::string refusal = candidate.refusal(fusion);
    if (!refusal.empty()) return refusal;
  }
  return "";
}

std::vector<std::string> KernelRegistry::Keys(absl::string_view device) const {
  std::vector<std::string> keys;
  const std::string prefix = absl::StrCat(device, "/");
  for (const auto& entry : candidates_) {
    if (absl::StartsWith(entry.first, prefix)) {
      keys.push_back(entry.first.substr(prefix.size()));
    }
  }
  return keys;
}

std::vector<std::pair<std::string, const Candidate*>> KernelRegistry::All(
    absl::string_view device) const {
  std::vector<std::pair<std::string, const Candidate*>> all;
  const std::string prefix = absl::StrCat(device, "/");
  for (const auto& entry : candidates_) {
    if (!absl::StartsWith(entry.first, prefix)) continue;
    for (const Candidate& candidate : entry.second) {
      all.emplace_back(entry.first.substr(prefix.size()), &candidate);
    }
  }
  return all;
}

}  // namespace kernels
}  // namespace halftone
