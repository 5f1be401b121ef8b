#include "runtime/exec/body_runner.h"

#include <algorithm>
#include <utility>

#include "graph/base/error.h"

namespace halftone {
namespace runtime {

void BodyRunner::Begin(const StepPlace& place) {
  if (place.symbols != place_.symbols) prepared_.clear();
  place_ = place;
}

void BodyRunner::Clear() {
  for (auto& memory : used_) {
    const int64_t bytes = memory->bytes();
    free_.emplace(bytes, std::move(memory));
  }
  used_.clear();
}

absl::StatusOr<void*> BodyRunner::Allocate(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  const auto found = free_.find(bytes);
  if (found != free_.end()) {
    used_.push_back(std::move(found->second));
    free_.erase(found);
  } else {
    HT_ASSIGN_OR_RETURN(auto memory, place_.device->Allocate(bytes));
    used_.push_back(std::move(memory));
  }
  return used_.back()->data();
}

absl::StatusOr<BodyRunner::Prepared*> BodyRunner::Prepare(const Block& body,
                                                          const Op& op) {
  Prepared& prepared = prepared_[&op];
  if (prepared.instance != nullptr) return &prepared;
  const kernels::BoundOp bound(body, op, place_.symbols, place_.bind);
  HT_ASSIGN_OR_RETURN(auto candidates, place_.kernels->Find(bound));
  if (candidates.empty()) {
    return CompilerBug(body.name(op), ": a fusion inside of a fusion");
  }
  const kernels::Candidate& candidate = *candidates[0];
  for (const kernels::TensorDesc& desc : bound.outputs()) {
    prepared.output_bytes.push_back(desc.bytes());
  }
  if (candidate.workspace_bytes) {
    prepared.workspace_bytes = candidate.workspace_bytes(bound);
  }
  HT_ASSIGN_OR_RETURN(prepared.instance,
                      candidate.prepare(bound, *place_.device));
  return &prepared;
}

absl::StatusOr<std::vector<void*>> BodyRunner::Run(const Block& body,
                                                   const Op& op,
                                                   const Values& values) {
  HT_ASSIGN_OR_RETURN(Prepared* const prepared, Prepare(body, op));
  std::vector<const void*> inputs;
  for (ValueId value : op.inputs.all()) {
    inputs.push_back(values.at(value.index()));
  }
  std::vector<void*> outputs;
  for (int64_t bytes : prepared->output_bytes) {
    HT_ASSIGN_OR_RETURN(outputs.emplace_back(), Allocate(bytes));
  }
  void* workspace = nullptr;
  if (prepared->workspace_bytes > 0) {
    HT_ASSIGN_OR_RETURN(workspace, Allocate(prepared->workspace_bytes));
  }
  HT_RETURN_IF_ERROR(prepared->instance->Enqueue({inputs, outputs, workspace},
                                                 *place_.stream));
  HT_RETURN_IF_ERROR(place_.stream->Synchronize());
  return outputs;
}

}  // namespace runtime
}  // namespace halftone
