#include "runtime/exec/non_finite_search.h"

#include <algorithm>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/op_schema.h"
#include "runtime/exec/host_tensor.h"

namespace halftone {
namespace runtime {
namespace {

void Lower(int label, int* lowest) {
  if (label >= 0 && (*lowest < 0 || label < *lowest)) *lowest = label;
}

bool IsCheck(const Op& op) { return op.schema->name() == "check_finite"; }

}  // namespace

NonFinite NonFiniteSearch::first() const {
  for (const int origin : {checked_, reduced_, norm_}) {
    if (origin >= 0) return origins_[origin];
  }
  return origins_.empty() ? NonFinite() : origins_[0];
}

// What a micro-batch leaves to the next lies in cells.
absl::Status NonFiniteSearch::Begin(const StepPlace& place) {
  place_ = place;
  bodies_.Begin(place);
  ++micro_batch_;
  looked_at_.clear();
  for (auto it = labels_.begin(); it != labels_.end();) {
    const auto here = it++;
    if (cells_.count(here->first) == 0) labels_.erase(here);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> NonFiniteSearch::IsFinite(DType dtype, const void* data,
                                               int64_t bytes) {
  if (bytes == 0 || !IsFloat(dtype)) return true;
  std::string host(bytes, '\0');
  HT_RETURN_IF_ERROR(place_.stream->Copy(&host[0], data, bytes));
  HT_RETURN_IF_ERROR(place_.stream->Synchronize());
  return AllFinite(dtype, host.data(), bytes / SizeOf(dtype));
}

absl::Status NonFiniteSearch::LookAtInputs(const Step& step, Pointers inputs) {
  found_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || !looked_at_.insert(inputs[i]).second) continue;
    const ValueId value = step.block->op(step.op).inputs.all()[i];
    HT_ASSIGN_OR_RETURN(
        const bool finite,
        IsFinite(step.block->dtype(value), inputs[i], step.inputs[i].bytes));
    if (finite) continue;
    looked_at_.erase(inputs[i]);  // each of its readers is told so
    if (found_.empty()) found_ = std::string(step.block->name(value));
  }
  return absl::OkStatus();
}

// A fusion may write over what it reads.
absl::Status NonFiniteSearch::Before(const Step& step, Pointers inputs) {
  if (step.kind != Step::Kind::kKernel) return absl::OkStatus();
  HT_RETURN_IF_ERROR(LookAtInputs(step, inputs));
  if (step.block->op(step.op).body == nullptr) return absl::OkStatus();
  bodies_.Clear();
  kept_.assign(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const int64_t bytes = step.inputs[i].bytes;
    const absl::StatusOr<void*> kept = bodies_.Allocate(bytes);
    if (!kept.ok()) {  // other ranks go on: so does this one
      kept_.clear();
      return absl::OkStatus();
    }
    kept_[i] = *kept;
    HT_RETURN_IF_ERROR(place_.stream->Copy(kept_[i], inputs[i], bytes));
  }
  return absl::OkStatus();
}

int NonFiniteSearch::LabelOf(Pointers inputs) const {
  int label = -1;
  for (const void* input : inputs) {
    const auto found = labels_.find(input);
    if (found != labels_.end()) Lower(found->second, &label);
  }
  return label;
}

int NonFiniteSearch::LabelInside(const Slice& slice, const void* data) const {
  int lowest = -1;
  const char* const begin = static_cast<const char*>(data);
  const char* const end = begin + slice.bytes;
  for (const auto& [address, label] : labels_) {
    if (address >= begin && address < end) Lower(label, &lowest);
  }
  return lowest;
}

absl::Status NonFiniteSearch::After(const Step& step, Pointers inputs,
                                    absl::Span<void* const> outputs) {
  if (step.kind == Step::Kind::kAllReduce ||
      step.kind == Step::Kind::kReduceScatter) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      Lower(LabelInside(step.outputs[i], outputs[i]), &reduced_);
    }
    return absl::OkStatus();
  }
  if (step.kind == Step::Kind::kAllGather) {  // read as one from now on
    const int own = LabelInside(step.outputs[0], outputs[0]);
    if (own >= 0) labels_[outputs[0]] = own;
    return absl::OkStatus();
  }
  if (IsCollective(step.kind)) return absl::OkStatus();
  const int read = LabelOf(inputs);
  int label = read;
  const bool kernel = step.kind == Step::Kind::kKernel;
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool finite = label < 0;
    looked_at_.erase(outputs[i]);
    if (kernel) {
      looked_at_.insert(outputs[i]);
      const Op& op = step.block->op(step.op);
      HT_ASSIGN_OR_RETURN(
          finite, IsFinite(step.block->dtype(op.outputs.all()[i]), outputs[i],
                           step.outputs[i].bytes));
    }
    if (finite) {
      labels_.erase(outputs[i]);
      continue;
    }
    if (label < 0) label = NewOrigin(step);
    labels_[outputs[i]] = label;
    if (step.outputs[i].arena == ArenaKind::kState) cells_.insert(outputs[i]);
  }
  if (kernel && IsCheck(step.block->op(step.op))) {
    Lower(label, read < 0 && found_.empty() ? &norm_ : &checked_);
  }
  return absl::OkStatus();
}

// Of a fusion in whose body every value is finite, for it rounds where the
// fused kernel does not, or where there is no room for the body: the op behind
// the first result.
int NonFiniteSearch::NewOrigin(const Step& step) {
  NonFinite origin = {step.name, found_, micro_batch_};
  const Op& op = step.block->op(step.op);
  if (op.body != nullptr) {
    const Block& body = *op.body;
    const ValueId result = body.body_results()[0];
    origin.op = std::string(body.name(body.op(body.value(result).op())));
    const absl::StatusOr<std::string> found = SearchBody(body);
    if (found.ok() && !found->empty()) origin.op = *found;
  }
  origins_.push_back(std::move(origin));
  return static_cast<int>(origins_.size()) - 1;
}

absl::StatusOr<std::string> NonFiniteSearch::SearchBody(const Block& body) {
  if (kept_.empty()) return std::string();
  BodyRunner::Values values;
  const std::vector<ValueId> feeds = body.Feeds();
  for (size_t i = 0; i < feeds.size(); ++i) {
    values[feeds[i].index()] = kept_[i];
  }
  for (OpId id = body.first(); id.valid(); id = body.next(id)) {
    const Op& op = body.op(id);
    HT_ASSIGN_OR_RETURN(const std::vector<void*> made,
                        bodies_.Run(body, op, values));
    for (size_t i = 0; i < made.size(); ++i) {
      const ValueId value = op.outputs.all()[i];
      values[value.index()] = made[i];
      const int64_t bytes =
          kernels::Bind(body.type(value), place_.symbols).bytes();
      HT_ASSIGN_OR_RETURN(const bool finite,
                          IsFinite(body.dtype(value), made[i], bytes));
      if (!finite) return std::string(body.name(op));
    }
  }
  return std::string();
}

}  // namespace runtime
}  // namespace halftone
