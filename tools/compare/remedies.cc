#include "tools/compare/remedies.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "runtime/compare/error_bound.h"
#include "runtime/train/non_finite.h"

namespace halftone {
namespace tools {
namespace {

using runtime::ComparedValue;
using runtime::ErrorsThatCount;
using runtime::ValueErrors;

constexpr double kLargestF16 = 65504;
// Of its elements, above which a value has lost something.
constexpr double kNotable = 0.001;

bool IsScaledF16(const ComparedValue& value) {
  return value.value.scaler >= 0 && value.value.dtype == DType::kF16;
}

}  // namespace

Remedies::Remedies(const runtime::Comparison& comparison,
                   const Program& program, const runtime::TrainConfig& config)
    : comparison_(comparison), program_(program), config_(config) {
  if (config.model_ops) model_ops_ = config.model_ops();
  double largest = 0;
  for (const ComparedValue& value : comparison.values) {
    if (!IsScaledF16(value)) continue;
    largest = std::max(largest, ErrorsThatCount(value).max_reference);
  }
  if (largest > 0) {
    largest_scale_ =
        std::exp2(std::floor(std::log2(kLargestF16 / largest / 2)));
    // Its bounds may be others'.
    if (!Accepts("amp.loss_scaling.init_loss_scaling",
                 ExactDouble(largest_scale_))) {
      largest_scale_ = 0;
    }
  }
}

bool Remedies::Accepts(const char* path, const std::string& value) const {
  return config_.accepts && config_.accepts(path, value);
}

std::string Remedies::ForScale(const ComparedValue& value) const {
  const ValueErrors& errors = ErrorsThatCount(value);
  const double scale = comparison_.loss_scaling;
  const bool too_low = errors.share(errors.underflow) > kNotable;
  const bool too_high = errors.overflow > 0;
  if (!IsScaledF16(value) || too_low == too_high || largest_scale_ == 0 ||
      (too_low ? largest_scale_ <= scale : largest_scale_ >= scale)) {
    return "";
  }
  return absl::StrCat(too_low ? "a higher" : "a lower",
                      " loss scale: ", "--loss-scale ",
                      ExactDouble(largest_scale_));
}

std::string Remedies::LowInputOf(const std::string& op) const {
  const Entry* const entry = program_.FindEntry(comparison_.entry);
  const auto look = [&op](const Block& block) -> std::string {
    const OpId id = block.FindOp(op);
    if (!id.valid()) return "";
    for (const ValueId input : block.op(id).inputs.all()) {
      if (!IsLow(block.dtype(input))) continue;
      return runtime::OriginalName(block.name(input));
    }
    return "";
  };
  const Block& block = entry->block();
  std::string found = look(block);
  for (OpId id = block.first(); found.empty() && id.valid();
       id = block.next(id)) {
    if (block.op(id).body != nullptr) found = look(*block.op(id).body);
  }
  return found;
}

std::string Remedies::ForOp(const ComparedValue& value) const {
  // What has come down the chain may be the fault of those before it.
  if (value.isolated.elements == 0) return "";
  const runtime::NonFiniteOp op = runtime::DescribeNonFinite(
      program_, {value.value.op, /*input=*/""}, model_ops_);
  if (!op.low_op.empty()) {
    return Accepts("amp.custom_black_opnames", op.low_op)
               ? absl::StrCat("--black-op ", ShellWord(op.low_op))
               : "";
  }
  if (value.value.backward) return "";
  const std::string input = LowInputOf(value.value.op);
  return !input.empty() && Accepts("amp.custom_black_varnames", input)
             ? absl::StrCat("--black-var ", ShellWord(input))
             : "";
}

std::string Remedies::For(const ComparedValue& value) const {
  const ValueErrors& errors = ErrorsThatCount(value);
  if (errors.relative_error() == 0 && errors.underflow == 0) return "";
  std::vector<std::string> remedies;
  const std::string scale = ForScale(value);
  if (!scale.empty()) remedies.push_back(scale);
  const std::string flag = ForOp(value);
  if (!flag.empty()) remedies.push_back(flag);
  const bool range =
      errors.overflow > 0 || errors.share(errors.underflow) > kNotable;
  if (range && value.value.dtype == DType::kF16 &&
      Accepts("amp.dtype", "bf16")) {
    remedies.push_back("--dtype bf16");
  }
  return absl::StrJoin(remedies, ", or ");
}

}  // namespace tools
}  // namespace halftone
