// Convolutions and pooling: paddings in numbers, windows counted as Paddle
// does.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using paddle::OpDesc;

// The last `count` dims of a variable, all known; empty: they are not.
std::vector<int64_t> Sizes(const std::string& name, size_t count,
                           PaddleScope& scope) {
  const paddle::VarDesc* const var = scope.Variable(name);
  if (var == nullptr) return {};
  const auto& dims = var->type().lod_tensor().tensor().dims();
  if (dims.size() < static_cast<int>(count)) return {};
  std::vector<int64_t> sizes(dims.end() - count, dims.end());
  const auto unknown = [](int64_t size) { return size < 1 || size > 1 << 24; };
  if (std::any_of(sizes.begin(), sizes.end(), unknown)) return {};
  return sizes;
}

// Paddings in numbers for SAME (an output for each stride, the rest of the
// padding behind) and VALID (none). Returns what is wrong.
std::string ExplicitPaddings(const std::string& input,
                             const std::vector<int64_t>& window,
                             PaddleScope& scope, OpDesc* op) {
  const std::string how = StringAttr(*op, "padding_algorithm", "EXPLICIT");
  if (how == "EXPLICIT") return "";
  std::vector<int64_t> paddings(2 * window.size(), 0);
  if (how == "SAME") {
    const std::vector<int64_t> sizes = Sizes(input, window.size(), scope);
    const std::vector<int64_t> strides = IntsAttr(*op, "strides");
    if (window.empty() || sizes.size() != window.size() ||
        strides.size() != window.size()) {
      return "padding_algorithm SAME needs constant sizes";
    }
    for (size_t i = 0; i < window.size(); ++i) {
      if (strides[i] < 1) return "expected strides of 1 or more";
      const int64_t outputs = (sizes[i] + strides[i] - 1) / strides[i];
      const int64_t sum = std::max<int64_t>(
          0, (outputs - 1) * strides[i] + window[i] - sizes[i]);
      paddings[2 * i] = sum / 2;
      paddings[2 * i + 1] = sum - sum / 2;
    }
    // Paddle's SAME knows no dilation.
    if (FindAttr(*op, "dilations") != nullptr) {
      SetInts("dilations", std::vector<int64_t>(window.size(), 1), op);
    }
  } else if (how != "VALID") {
    return absl::StrCat("padding_algorithm ", how, " is not known");
  }
  SetInts("paddings", paddings, op);
  for (OpDesc::Attr& attr : *op->mutable_attrs()) {
    if (attr.name() == "padding_algorithm") attr.set_s("EXPLICIT");
  }
  return "";
}

}  // namespace

void Windowed(const OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result) {
  OpDesc copy = op;
  const auto& input = InputsOf(op, "Input");
  const auto& filter = InputsOf(op, "Filter");
  if (!input.empty() && !filter.empty()) {
    const size_t rank = IntsAttr(op, "strides").size();
    const std::string wrong =
        ExplicitPaddings(input[0], Sizes(filter[0], rank, scope), scope, &copy);
    if (!wrong.empty()) result->refusals.push_back({wrong});
  }
  ByName(copy, rule, scope, result);
}

void Pooled(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  OpDesc copy = op;
  const auto& input = InputsOf(op, "X");
  if (!input.empty()) {
    const std::string wrong =
        ExplicitPaddings(input[0], IntsAttr(op, "ksize"), scope, &copy);
    if (!wrong.empty()) result->refusals.push_back({wrong});
  }
  ByName(copy, rule, scope, result);
  // Paddle counts windows that begin in the padding.
  if (!result->nodes.empty() && BoolAttr(op, "ceil_mode", false)) {
    SetLast("ceil_windows", std::string("all"), result);
  }
}

}  // namespace halftone
