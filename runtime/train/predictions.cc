#include "runtime/train/predictions.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "runtime/exec/host_tensor.h"

namespace halftone {
namespace runtime {
namespace {

// Whether feeds that come in samples have a part in it.
bool IsOfSamples(const Block& block, ValueId value) {
  std::vector<bool> seen(block.value_limit());
  std::vector<ValueId> left = {value};
  while (!left.empty()) {
    const ValueId id = left.back();
    left.pop_back();
    if (seen[id.index()]) continue;
    seen[id.index()] = true;
    if (!block.type(id).Elements().is_constant()) return true;
    const OpId op = block.value(id).op();
    if (!op.valid()) continue;
    for (ValueId input : block.op(op).inputs.all()) left.push_back(input);
  }
  return false;
}

// The only axis that has the samples, once; -1: there is none.
int SampleAxis(const TensorType& type) {
  int axis = -1;
  for (int d = 0; d < type.rank(); ++d) {
    if (type.dims[d].is_constant()) continue;
    const Dim per_sample(type.dims[d].coefficient());
    if (axis >= 0 || type.dims[d] != per_sample * Dim::Symbol(0)) return -1;
    axis = d;
  }
  return axis;
}

// Each part is [outer, along, inner]; so is their join.
template <typename Parts>
std::string Join(const Parts& parts, int64_t outer) {
  size_t size = 0;
  for (const auto& part : parts) size += part.bytes.size();
  std::string bytes;
  bytes.reserve(size);
  for (int64_t o = 0; o < outer; ++o) {
    for (const auto& part : parts) {
      const size_t row = part.bytes.size() / outer;
      bytes.append(part.bytes, o * row, row);
    }
  }
  return bytes;
}

void Put(int64_t number, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Takes `bytes` from the front; false: there are not as many.
bool Get(void* to, size_t bytes, absl::string_view* from) {
  if (from->size() < bytes) return false;
  std::memcpy(to, from->data(), bytes);
  from->remove_prefix(bytes);
  return true;
}

}  // namespace

absl::StatusOr<PredictionGatherer> PredictionGatherer::Create(
    const Program& program, bool in_one_step, Communicator* communicator) {
  PredictionGatherer gatherer(communicator);
  const Entry& eval = *program.FindEntry(kEvalEntry);
  for (const Result& result : eval.results()) {
    const TensorType& type = eval.block().type(result.value);
    Gathered& one = gatherer.values_.emplace_back();
    one.value.name = result.name;
    one.value.dtype = type.dtype;
    one.value.axis = SampleAxis(type);
    if (one.value.axis >= 0) {
      one.value.per_sample = type.dims[one.value.axis].coefficient();
    } else if (!in_one_step && IsOfSamples(eval.block(), result.value)) {
      return ModelError(result.name, ": ", ToString(type, program.symbols()),
                        ", made of all samples of a step: expected a dim of ",
                        "the samples, by which steps are put together; take ",
                        "all samples in one step of one rank (--ranks 1 ",
                        "--batch-size N), or other values with --fetch");
    }
  }
  return gatherer;
}

void PredictionGatherer::Keep(Gathered& to, Part part) {
  // What is of no sample is the same in every step.
  if (to.value.axis >= 0 || to.parts.empty()) {
    to.parts.push_back(std::move(part));
  }
}

absl::Status PredictionGatherer::Add(const StepView& view) {
  const bool alone = communicator_->world_size() == 1;
  std::string message;
  for (Gathered& one : values_) {
    for (const StepView::Item& item : view.items()) {
      if (item.name != one.value.name) continue;
      const auto& dims = item.desc->dims;
      one.value.dims.assign(dims.begin(), dims.end());
      Part part;
      part.along = one.value.axis >= 0 ? dims[one.value.axis] : 0;
      part.bytes =
          ToRowMajor(*item.desc, {static_cast<const char*>(item.data),
                                  static_cast<size_t>(item.desc->bytes())});
      if (alone) {
        Keep(one, std::move(part));
        break;
      }
      Put(part.along, &message);
      Put(static_cast<int64_t>(part.bytes.size()), &message);
      message += part.bytes;
      break;
    }
  }
  if (alone) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator_->AllGather(message));
  if (communicator_->rank() != 0) return absl::OkStatus();
  for (absl::string_view from : all) {
    for (Gathered& one : values_) {
      Part part;
      int64_t bytes = 0;
      if (!Get(&part.along, sizeof(part.along), &from) ||
          !Get(&bytes, sizeof(bytes), &from) || bytes < 0 ||
          static_cast<uint64_t>(bytes) > from.size()) {
        return CommunicationError("a rank sent damaged predictions");
      }
      part.bytes = std::string(from.substr(0, bytes));
      from.remove_prefix(bytes);
      Keep(one, std::move(part));
    }
  }
  return absl::OkStatus();
}

std::vector<PredictedValue> PredictionGatherer::Take() && {
  std::vector<PredictedValue> values;
  if (communicator_->rank() != 0) return values;
  for (Gathered& one : values_) {
    PredictedValue& value = values.emplace_back(std::move(one.value));
    int64_t outer = 1;
    if (value.axis >= 0) {
      value.dims[value.axis] = 0;
      for (const Part& part : one.parts) {
        value.dims[value.axis] += part.along;
      }
      for (int d = 0; d < value.axis; ++d) outer *= value.dims[d];
    }
    value.bytes = one.parts.size() == 1 ? std::move(one.parts[0].bytes)
                                        : Join(one.parts, outer);
    one.parts.clear();
  }
  return values;
}

}  // namespace runtime
}  // namespace halftone
