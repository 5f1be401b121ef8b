#include "kernels/common/dispatch.h"

#include <utility>

#include "graph/base/layout.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "kernels/common/shapes.h"

namespace halftone {
namespace kernels {
namespace {

bool Contains(absl::Span<const absl::string_view> names,
              absl::string_view name) {
  for (absl::string_view n : names) {
    if (n == name) return true;
  }
  return false;
}

// Appends to `bindings` every way to go on from `prefix`.
void Enumerate(absl::Span<const DTypeSet> sets, std::vector<DType> prefix,
               std::vector<std::vector<DType>>* bindings) {
  if (prefix.size() == sets.size()) {
    bindings->push_back(std::move(prefix));
    return;
  }
  for (DType dtype : sets[prefix.size()]) {
    std::vector<DType> longer = prefix;
    longer.push_back(dtype);
    Enumerate(sets, std::move(longer), bindings);
  }
}

const OpSchema& SchemaOf(absl::string_view op) {
  const OpSchema* const schema = Ops().Find(op);
  HT_CHECK(schema != nullptr, "a kernel for an op that has no schema");
  return *schema;
}

std::vector<std::vector<DType>> BindingsOf(
    const OpSchema& schema, absl::Span<const absl::string_view> unbound) {
  std::vector<DTypeSet> sets;
  for (const TypeVar& var : schema.type_vars()) {
    sets.push_back(var.allowed);
    if (Contains(unbound, var.name)) sets.back().push_back(DType::kInvalid);
  }
  std::vector<std::vector<DType>> bindings;
  Enumerate(sets, {}, &bindings);
  return bindings;
}

}  // namespace

Candidate OverImages(Candidate candidate,
                     std::function<int64_t(const BoundOp&)> floats) {
  candidate.supports = HasOneLayout;
  if (floats != nullptr) {
    candidate.workspace_bytes = [floats](const BoundOp& op) {
      return floats(op) * int64_t{sizeof(float)};
    };
  }
  return candidate;
}

void AddForSchema(KernelRegistry& registry, absl::string_view op,
                  const Candidate& candidate,
                  absl::Span<const absl::string_view> unbound) {
  const OpSchema& schema = SchemaOf(op);
  for (const std::vector<DType>& binding : BindingsOf(schema, unbound)) {
    registry.Add(op, binding, Layout::kRowMajor, candidate);
    if (schema.layout() != LayoutRule::kRowMajor) {
      registry.Add(op, binding, Layout::kChannelsLast, candidate);
    }
  }
}

void AddForLayout(KernelRegistry& registry, absl::string_view op, Layout layout,
                  const Candidate& candidate) {
  for (const std::vector<DType>& binding : BindingsOf(SchemaOf(op), {})) {
    registry.Add(op, binding, layout, candidate);
  }
}

}  // namespace kernels
}  // namespace halftone
