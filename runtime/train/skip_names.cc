#include "runtime/train/skip_names.h"

#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/parameter_updates.h"
#include "runtime/train/fetches.h"

namespace halftone {
namespace runtime {
namespace {

// By value: the parameter whose reduced gradient it is; of those that share
// one, the first.
absl::flat_hash_map<ValueId, CellId> ReducedGradients(const Block& block) {
  absl::flat_hash_map<ValueId, CellId> parameters;
  for (const ParameterUpdate& update : ParameterUpdates(block)) {
    if (!update.parameter.valid()) continue;
    const auto [it, fresh] =
        parameters.try_emplace(update.origin.reduced, update.parameter);
    if (!fresh && update.parameter.index() < it->second.index()) {
      it->second = update.parameter;
    }
  }
  return parameters;
}

}  // namespace

SkipNames::SkipNames(const Program& program) {
  const Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return;
  const Block& block = train->block();
  const auto parameters = ReducedGradients(block);
  for (const OpId id : block.ops()) {
    const Op& op = block.op(id);
    if (op.schema->name() != "check_finite") continue;
    names_.clear();  // before the step's own check are those of a loss's parts
    const int stats = op.schema->FindInput("Stats");
    gradients_ = op.inputs.begin(stats);
    for (int i = 0; i < op.inputs.end(stats); ++i) {
      const ValueId value = op.inputs.all()[i];
      const auto it = parameters.find(value);
      names_.push_back(it == parameters.end()
                           ? std::string(block.name(value))
                           : GradientName(program.cell(it->second).name));
    }
  }
}

bool SkipNames::IsNorm(int64_t first_bad) const {
  return first_bad >= static_cast<int64_t>(names_.size());
}

std::string SkipNames::NameOf(int64_t first_bad) const {
  const auto members = static_cast<int64_t>(names_.size());
  const int64_t position = IsNorm(first_bad) ? first_bad - members : first_bad;
  if (position < 0 || position >= members) return "a gradient";
  return names_[position];
}

std::string SkipNames::Describe(int64_t position, const StepView& view) const {
  const std::string name = NameOf(position);
  if (IsNorm(position)) {
    return absl::StrCat(
        "the gradients' norm overflows f32, for the most part by ", name);
  }
  if (position >= 0 && position < gradients_) {
    for (const StepView::Item& item : view.items()) {
      if (item.name != kSquaredNorm) continue;
      const std::vector<float> squares = Floats(item);
      if (position >= static_cast<int64_t>(squares.size())) break;
      if (std::isnan(squares[position])) return name + " has nan";
      if (std::isinf(squares[position])) return name + " has inf";
    }
  }
  return name + " is not finite";
}

}  // namespace runtime
}  // namespace halftone
