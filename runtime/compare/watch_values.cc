#include "runtime/compare/watch_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "kernels/cpu/convert.h"
#include "runtime/exec/host_tensor.h"

namespace halftone {
namespace runtime {
namespace {

bool IsOwn(const Slice& slice) {
  return slice.arena != ArenaKind::kState && slice.arena != ArenaKind::kFeed;
}

// The scale of a value that scaler `number` has scaled.
float ScaleOf(const std::vector<float>& scales, int number) {
  return number < 0 ? 1.0f : scales[number];
}

std::string InLayout(kernels::TensorDesc desc, Layout to,
                     absl::string_view bytes) {
  if (to == Layout::kRowMajor) return ToRowMajor(desc, bytes);
  desc.layout = to;
  return FromRowMajor(desc, bytes);
}

void ChangeLayout(kernels::TensorDesc desc, Layout to,
                  std::vector<float>* data) {
  desc.dtype = DType::kF32;
  const std::string changed =
      InLayout(desc, to,
               {reinterpret_cast<const char*>(data->data()),
                data->size() * sizeof(float)});
  std::copy(changed.begin(), changed.end(),
            reinterpret_cast<char*>(data->data()));
}

}  // namespace

absl::Status ValueWatcher::Begin(const StepPlace& place) {
  place_ = place;
  bodies_.Begin(place);
  return absl::OkStatus();
}

absl::StatusOr<const void*> ValueWatcher::OnHost(const Tap& tap) {
  if (!place_.device->asynchronous()) return tap.data;
  host_.resize(tap.desc.bytes());
  HT_RETURN_IF_ERROR(place_.stream->Copy(&host_[0], tap.data, host_.size()));
  HT_RETURN_IF_ERROR(place_.stream->Synchronize());
  return host_.data();
}

absl::Status ValueWatcher::Before(const Step& step, Pointers inputs) {
  if (step.kind != Step::Kind::kKernel) return absl::OkStatus();
  const Op& op = step.block->op(step.op);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId value = op.inputs.all()[i];
    if (inputs[i] == nullptr || step.inputs[i].bytes == 0) continue;
    HT_RETURN_IF_ERROR(OnInput(
        {{step.block, value.index()},
         kernels::Bind(step.block->type(value), place_.symbols),
         const_cast<void*>(inputs[i]),  // the step's memory is the executor's
         IsOwn(step.inputs[i])}));
  }
  return op.body == nullptr ? absl::OkStatus() : RunBody(*op.body, inputs);
}

absl::Status ValueWatcher::After(const Step& step, Pointers,
                                 absl::Span<void* const> outputs) {
  if (step.kind != Step::Kind::kKernel) return absl::OkStatus();
  const Op& op = step.block->op(step.op);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId value = op.outputs.all()[i];
    if (outputs[i] == nullptr || step.outputs[i].bytes == 0) continue;
    HT_RETURN_IF_ERROR(
        OnOutput({{step.block, value.index()},
                  kernels::Bind(step.block->type(value), place_.symbols),
                  outputs[i],
                  /*is_own=*/true}));
  }
  return absl::OkStatus();
}

const std::vector<OpId>& ValueWatcher::OpsToRun(const Block& body) {
  const auto [found, is_new] = ops_to_run_.try_emplace(&body);
  if (!is_new) return found->second;
  absl::flat_hash_set<int> needed;
  for (int i = 0; i < body.value_limit(); ++i) {
    const Value& value = body.value(ValueId(i));
    const auto& results = body.body_results();
    const bool hidden =
        value.op().valid() && !value.erased &&
        std::find(results.begin(), results.end(), value.id) == results.end();
    if (hidden && Wants({&body, i})) needed.insert(i);
  }
  for (OpId id = body.last(); id.valid(); id = body.previous(id)) {
    const Op& op = body.op(id);
    const auto outputs = op.outputs.all();
    if (std::none_of(outputs.begin(), outputs.end(), [&needed](ValueId value) {
          return needed.contains(value.index());
        })) {
      continue;
    }
    for (const ValueId input : op.inputs.all()) needed.insert(input.index());
    found->second.push_back(id);
  }
  std::reverse(found->second.begin(), found->second.end());
  return found->second;
}

absl::Status ValueWatcher::RunBody(const Block& body, Pointers inputs) {
  BodyRunner::Values values;
  const std::vector<ValueId> feeds = body.Feeds();
  for (size_t i = 0; i < feeds.size(); ++i) {
    values[feeds[i].index()] = const_cast<void*>(inputs[i]);
  }
  const auto tap = [&](ValueId value, void* data) {
    return Tap{{&body, value.index()},
               kernels::Bind(body.type(value), place_.symbols),
               data,
               /*is_own=*/true};
  };
  for (const OpId id : OpsToRun(body)) {
    const Op& op = body.op(id);
    for (const ValueId input : op.inputs.all()) {
      if (!body.value(input).op().valid()) continue;
      HT_RETURN_IF_ERROR(OnInput(tap(input, values.at(input.index()))));
    }
    HT_ASSIGN_OR_RETURN(const std::vector<void*> made,
                        bodies_.Run(body, op, values));
    for (size_t i = 0; i < made.size(); ++i) {
      const ValueId output = op.outputs.all()[i];
      values[output.index()] = made[i];
      const auto& results = body.body_results();
      // The fused kernel makes those.
      if (std::find(results.begin(), results.end(), output) != results.end()) {
        continue;
      }
      HT_RETURN_IF_ERROR(OnOutput(tap(output, made[i])));
    }
  }
  bodies_.Clear();
  return absl::OkStatus();
}

absl::Status ReferenceKeeper::Begin(const StepPlace& place) {
  for (KeptValue& value : kept_) value.there = false;
  return ValueWatcher::Begin(place);
}

absl::Status ReferenceKeeper::Keep(const Tap& tap) {
  const auto found = match_.kept.find(tap.key);
  if (found == match_.kept.end()) return absl::OkStatus();
  for (const int number : found->second) {
    KeptValue& kept = kept_[number];
    if (std::exchange(kept.there, true)) continue;
    const ReferenceValue& reference = match_.references[number];
    const int64_t elements = tap.desc.elements();
    HT_ASSIGN_OR_RETURN(const void* const data, OnHost(tap));
    if (!IsMeasured(tap.desc.dtype)) {
      kept.bytes.assign(static_cast<const char*>(data), tap.desc.bytes());
      if (tap.desc.layout != reference.type.layout) {
        kept.bytes = InLayout(tap.desc, reference.type.layout, kept.bytes);
      }
      continue;
    }
    kept.data.resize(elements);
    kernels::ToFloat(tap.desc.dtype, data, kept.data.data(), elements);
    const float scale = ScaleOf(scales_, reference.scaler);
    if (scale != 1) {
      for (float& x : kept.data) x /= scale;
    }
    if (tap.desc.layout != reference.type.layout) {
      ChangeLayout(tap.desc, reference.type.layout, &kept.data);
    }
  }
  return absl::OkStatus();
}

absl::Status ErrorWatcher::Begin(const StepPlace& place) {
  given_.clear();
  return ValueWatcher::Begin(place);
}

const KeptValue* ErrorWatcher::ReferenceOf(const Tap& tap, int* number,
                                           float* scale) const {
  const auto found = match_.compared.find(tap.key);
  if (found == match_.compared.end()) return nullptr;
  const MatchedValue& value = match_.values[found->second];
  const KeptValue& kept = kept_[value.reference];
  if (!kept.there) return nullptr;
  *number = found->second;
  *scale = ScaleOf(scales_, value.scaler);
  return &kept;
}

absl::Status ErrorWatcher::OnInput(const Tap& tap) {
  if (!isolated_ || !tap.is_own) return absl::OkStatus();
  int number = 0;
  float scale = 1;
  const KeptValue* const kept = ReferenceOf(tap, &number, &scale);
  if (kept == nullptr || !given_.insert(tap.key).second) {
    return absl::OkStatus();
  }
  const auto write = [&](void* to) {
    if (!IsMeasured(tap.desc.dtype)) {
      std::copy(kept->bytes.begin(), kept->bytes.end(), static_cast<char*>(to));
      return;
    }
    WriteScaled(kept->data.data(), scale, tap.desc.dtype, to,
                static_cast<int64_t>(kept->data.size()),
                place().stream->threads());
  };
  if (!place().device->asynchronous()) {
    write(tap.data);
    return absl::OkStatus();
  }
  written_.resize(tap.desc.bytes());
  write(&written_[0]);
  HT_RETURN_IF_ERROR(
      place().stream->Copy(tap.data, written_.data(), written_.size()));
  return place().stream->Synchronize();
}

// Of what is much smaller than something that it is made of: a sum over that.
double ErrorWatcher::RoundingOf(const MatchedValue& value,
                                int64_t elements) const {
  constexpr int64_t kSummands = 64;
  double largest = 0;
  for (const int input : value.inputs) {
    const std::vector<float>& data = kept_[input].data;
    if (!kept_[input].there ||
        static_cast<int64_t>(data.size()) < kSummands * elements) {
      continue;
    }
    double sum = 0;
    for (const float x : data) sum += std::isfinite(x) ? std::fabs(x) : 0;
    largest = std::max(largest, sum / elements);
  }
  return largest * std::numeric_limits<float>::epsilon();
}

absl::Status ErrorWatcher::OnOutput(const Tap& tap) {
  int number = 0;
  float scale = 1;
  if (!IsMeasured(tap.desc.dtype)) return absl::OkStatus();
  const KeptValue* const kept = ReferenceOf(tap, &number, &scale);
  if (kept == nullptr) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const void* const data, OnHost(tap));
  const int64_t elements = tap.desc.elements();
  ValueErrors errors = ErrorsOf(tap.desc.dtype, data, kept->data.data(), scale,
                                elements, place().stream->threads());
  errors.rounding = RoundingOf(match_.values[number], elements);
  errors_[number].Add(errors);
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone
