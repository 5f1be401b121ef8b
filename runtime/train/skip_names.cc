#include "runtime/train/skip_names.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "runtime/train/fetches.h"

namespace halftone {
namespace runtime {
namespace {

// The parameter whose gradient a value is: its name, or its low-precision
// copy's, is how the value's begins. Empty if there is none.
std::string ParameterOf(const Program& program, absl::string_view value) {
  std::string longest;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter) continue;
    if (cell.name.size() > longest.size() &&
        absl::StartsWith(value, cell.name + ".")) {
      longest = cell.name;
    }
  }
  return longest;
}

}  // namespace

SkipNames::SkipNames(const Program& program) {
  const Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return;
  const Block& block = train->block();
  for (const OpId id : block.ops()) {
    const Op& op = block.op(id);
    if (op.schema->name() != "check_finite") continue;
    const int stats = op.schema->FindInput("Stats");
    gradients_ = op.inputs.begin(stats);
    for (int i = 0; i < op.inputs.end(stats); ++i) {
      const absl::string_view name = block.name(op.inputs.all()[i]);
      const std::string parameter =
          i < gradients_ ? ParameterOf(program, name) : "";
      names_.push_back(parameter.empty() ? std::string(name)
                                         : parameter + ".grad");
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
