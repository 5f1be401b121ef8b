#include "kernels/kernel_registry.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/ir/type.h"
#include "graph/schema/kernel_key.h"
#include "graph/schema/op_builder.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace {

std::string KeyOf(absl::string_view op, absl::Span<const DType> binding,
                  Layout layout) {
  return std::string(KernelKey(op, binding, layout).text());
}

std::string PatternKey(absl::string_view pattern, DType dtype, Layout layout) {
  return KeyOf(absl::StrCat("pattern:", pattern), {dtype}, layout);
}

// Layout of the first input, else of the first output.
Layout LeadLayout(const BoundOp& op) {
  if (!op.inputs().empty()) return op.inputs()[0].layout;
  if (!op.outputs().empty()) return op.outputs()[0].layout;
  return Layout::kRowMajor;
}

std::string KeyOf(const BoundOp& op) {
  if (op.type() == "fusion") {
    const FusedOp fused(op);
    return PatternKey(fused.pattern(), fused.key().dtype, fused.key().layout);
  }
  return KeyOf(op.type(), TypeBinding(op.block(), op.op()), LeadLayout(op));
}

}  // namespace

void KernelRegistry::Add(absl::string_view op, absl::Span<const DType> binding,
                         Layout layout, Candidate candidate) {
  candidates_[KeyOf(op, binding, layout)].push_back(std::move(candidate));
}

void KernelRegistry::AddPattern(absl::string_view pattern,
                                absl::Span<const DType> dtypes,
                                absl::Span<const Layout> layouts,
                                Candidate candidate) {
  for (DType dtype : dtypes) {
    for (Layout layout : layouts) {
      candidates_[PatternKey(pattern, dtype, layout)].push_back(candidate);
    }
  }
}

void KernelRegistry::ForEach(
    const std::function<void(absl::string_view key, Candidate& candidate)>&
        change) {
  for (auto& [key, candidates] : candidates_) {
    for (Candidate& candidate : candidates) change(key, candidate);
  }
}

absl::StatusOr<std::vector<const Candidate*>> KernelRegistry::Find(
    const BoundOp& op) const {
  std::vector<const Candidate*> found;
  const std::string key = KeyOf(op);
  const auto it = candidates_.find(key);
  if (it != candidates_.end()) {
    for (const Candidate& candidate : it->second) {
      if (op.context().deterministic && !candidate.deterministic) continue;
      if (candidate.supports && !candidate.supports(op)) continue;
      found.push_back(&candidate);
    }
  }
  if (!found.empty() || op.type() == "fusion") return found;
  // The op's own keys are its nearest.
  const std::string prefix = absl::StrCat(op.type(), "(");
  std::vector<std::string> nearest;
  for (auto near = candidates_.lower_bound(prefix);
       near != candidates_.end() && absl::StartsWith(near->first, prefix) &&
       nearest.size() < 8;
       ++near) {
    nearest.push_back(near->first);
  }
  return ModelError(
      op.name(), " (", op.type(), "): no kernel ", key, " on ",
      op.context().target,
      it == candidates_.end() ? "" : " supports these shapes and attributes",
      nearest.empty()
          ? "; the target has no kernel for this op"
          : absl::StrCat("; there are ", absl::StrJoin(nearest, ", ")));
}

std::string KernelRegistry::Refusal(const BoundOp& fusion) const {
  const auto it = candidates_.find(KeyOf(fusion));
  if (it == candidates_.end()) return "";
  for (const Candidate& candidate : it->second) {
    if (!candidate.refusal) continue;
    std::string refusal = candidate.refusal(fusion);
    if (!refusal.empty()) return refusal;
  }
  return "";
}

std::vector<std::string> KernelRegistry::Keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : candidates_) keys.push_back(entry.first);
  return keys;
}

std::vector<std::pair<std::string, const Candidate*>> KernelRegistry::All()
    const {
  std::vector<std::pair<std::string, const Candidate*>> all;
  for (const auto& [key, candidates] : candidates_) {
    for (const Candidate& candidate : candidates) {
      all.emplace_back(key, &candidate);
    }
  }
  return all;
}

}  // namespace kernels
}  // namespace halftone
